/**
 * The further table of `npm run bench -- --all`: what else a call may be, beside the plain one with a warm token. Rounds
 * are interleaved here too; a ratio is that of CPU time per request to the case that it names.
 */
import { connect, type Socket } from 'node:net'
import { forgeTokens } from './access-tokens.ts'
import { median } from './exchanges.ts'
import { bodyCases } from './bodies.ts'
import { heldMegabytes } from './held-memory.ts'
import { startPosternProcess, type PosternSubject } from './postern-process.ts'
import { ACTIONS_YAML, PATH, PATH_100_KB, PATH_FILE } from './subjects.ts'
import { wrk, type WrkResult } from './wrk.ts'
import { changeScript, distinctScript, pacedScript, tokenScript, uploadScript } from './wrk-scripts.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2)
/** More than are spent in the seconds of one round. */
const FRESH = 20_000
const LIVE = 100_000
/** Time for every live token to be seen once. */
const LIVE_SECONDS = 45
const IDLE = 1000
const BULK = 10 * 1024 ** 2

export interface Case {
  readonly name: string
  readonly subject: PosternSubject
  /** The case that its cost is set beside. */
  readonly beside?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** wrk scripts, one per round: what was seen in one round is not new in the next. */
  readonly scripts?: readonly string[]
  readonly connections?: number
  /** Seconds of load before the first round. */
  readonly warming?: number
  /** Answers that are refusals by intent. */
  readonly refused?: true
  /** What stands while it is measured; answers how to end it. */
  readonly around?: () => Promise<() => void>
}

interface Sample extends WrkResult {
  readonly cpu: number
}

async function measure(one: Case, round: number, seconds = SECONDS): Promise<Sample> {
  const { subject, path = PATH, connections = 16 } = one
  const script = one.scripts?.[round % one.scripts.length]
  const headers = one.headers ?? subject.headers
  const end = await one.around?.()
  const before = subject.cpu()
  const result = await wrk({
    url: subject.origin + path,
    headers,
    seconds,
    connections,
    ...(script !== undefined && { script }),
  })
  const cpu = ((subject.cpu() - before) / result.requests) * 1e6
  end?.()
  return { ...result, cpu }
}

async function freshScripts(subject: PosternSubject): Promise<readonly string[]> {
  const scripts: string[] = []
  for (let round = 0; round <= ROUNDS; round += 1)
    scripts.push(await tokenScript(await forgeTokens(subject, 'RS256', FRESH)))
  return scripts
}

/** A deployment with so many actions, the one that is called last of them. */
function actionsYaml(count: number): string {
  const action = (name: string): string =>
    `  - { level: business, area: fund-data, action: ${name}, methods: { GET: { scopes: { any: [fund.read] } } } }`
  const others = Array.from({ length: count - 1 }, (_, index) => action(`other-${index}`))
  return ['actions:', ...others, action('fund-list'), ''].join('\n')
}

/** The same call twice: as the client sent it, and with path, headers and query of its own (C8.7). */
const SHAPED_YAML = `directory:
  businesses:
    ACME: { values: { tenant: t-7 } }
    GLOBEX: { values: { tenant: t-8 } }
    INITECH: { values: { tenant: t-9 } }
actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] } } } }
  - { level: business, area: fund-data, action: 'plain/{memberId}', methods: { GET: { scopes: { any: [fund.read] } } } }
  - level: business
    area: fund-data
    action: shaped/{memberId}
    methods:
      GET:
        scopes: { any: [fund.read] }
        upstream:
          path: /companies/{business}/members/{memberId}.json
          headers: { X-Tenant: '{business}', X-Source: postern }
          query: { business: '{business}', format: short }
  - level: business
    area: fund-data
    action: valued/{memberId}
    methods: { GET: { scopes: { any: [fund.read] }, upstream: { headers: { X-Tenant: '{business.tenant}' } } } }
`
const shapedPath = (action: string): string => `/api/1.0/b/ACME/fund-data/${action}/4711?page=2`

/** The same actions with another audit trail. A POST is a changing call: two records. */
const auditYaml = (audit: string): string => `audit: { ${audit} }
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods:
      GET: { scopes: { any: [fund.read] } }
      POST: { scopes: { any: [fund.read] }, body: { schema: { type: object } } }
`
const WITHOUT_TRAIL = 'a change, no audit trail'
const READ_WITHOUT_TRAIL = 'a read, no audit trail'

/** Connections that are opened and left. */
async function idleConnections({ origin }: PosternSubject): Promise<() => void> {
  const { hostname, port } = new URL(origin)
  const sockets = await Promise.all(
    Array.from(
      { length: IDLE },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect(Number(port), hostname, () => resolve(socket)).on('error', reject)
        }),
    ),
  )
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

const warm = 'warm token, 1 KB'
const PLAIN_OPERATION = 'an operation with a parameter and a query'
const ONE_OF_MANY = `one of ${LIVE} live tokens, again and again`

async function cases(upstream: string): Promise<readonly Case[]> {
  const plain = await startPosternProcess(upstream)
  const big = await startPosternProcess(upstream, ACTIONS_YAML)
  const bulk = await startPosternProcess(upstream, ACTIONS_YAML)
  const ten = await startPosternProcess(upstream, actionsYaml(10))
  const thousands = await startPosternProcess(upstream, actionsYaml(10_000))
  const shaped = await startPosternProcess(upstream, SHAPED_YAML)
  const two = await startPosternProcess(upstream, 'workers: 2\n')
  const many = await startPosternProcess(upstream, 'tokenCache: { size: 256MiB }\n')
  const live = await tokenScript(await forgeTokens(many, 'ES256', LIVE), true)
  const upload = await uploadScript(BULK)
  const untold = await startPosternProcess(upstream, auditYaml('enabled: false'))
  const written = await startPosternProcess(upstream, auditYaml('durability: system'))
  const durable = await startPosternProcess(upstream, auditYaml('durability: disk'))
  const change = { scripts: [await changeScript()], beside: WITHOUT_TRAIL }
  return [
    { name: warm, subject: plain },
    { name: 'token never seen before, RS256', subject: plain, scripts: await freshScripts(plain) },
    { name: 'refused, 401', subject: plain, headers: {}, refused: true },
    { name: 'refused, 404', subject: plain, path: '/api/1.0/b/ACME/fund-data/none', refused: true },
    { name: 'a query of its own in each call', subject: plain, scripts: [await distinctScript(PATH)] },
    { name: `beside ${IDLE} idle connections`, subject: plain, around: () => idleConnections(plain) },
    { name: '100 KB', subject: big, path: PATH_100_KB },
    { name: '10 MB upload', subject: bulk, path: PATH_FILE, connections: 4, scripts: [upload] },
    { name: PLAIN_OPERATION, subject: shaped, path: shapedPath('plain') },
    {
      name: 'with path, headers and query of its own',
      subject: shaped,
      path: shapedPath('shaped'),
      beside: PLAIN_OPERATION,
    },
    {
      name: 'with a value of the business in a header',
      subject: shaped,
      path: shapedPath('valued'),
      beside: PLAIN_OPERATION,
    },
    { name: '10 actions', subject: ten },
    { name: '10,000 actions', subject: thousands, beside: '10 actions' },
    { name: ONE_OF_MANY, subject: many },
    {
      name: `${LIVE} live tokens`,
      subject: many,
      beside: ONE_OF_MANY,
      scripts: [live],
      warming: LIVE_SECONDS,
    },
    { name: '2 workers', subject: two },
    { name: READ_WITHOUT_TRAIL, subject: untold },
    { name: 'a read, audit trail on', subject: durable, beside: READ_WITHOUT_TRAIL },
    { ...change, name: WITHOUT_TRAIL, subject: untold },
    { ...change, name: 'a change, records survive the process', subject: written },
    { ...change, name: 'a change, records survive a power cut', subject: durable },
  ].map((one) => ({ beside: warm, ...one })) as readonly Case[]
}

/** Half of what the plain case reaches, from many connections that pause between their requests. */
async function atHalfLoad(plain: Case, full: number): Promise<Case> {
  const connections = 64
  const ms = Math.max(1, Math.round((connections / (full / 2)) * 1000))
  return { ...plain, name: 'about half of that load', connections, scripts: [await pacedScript(ms)] }
}

type Samples = ReadonlyMap<Case, readonly Sample[]>

async function measureAll(all: readonly Case[]): Promise<Samples> {
  const samples = new Map<Case, Sample[]>(all.map((one) => [one, []]))
  for (let round = -1; round < ROUNDS; round += 1)
    for (const one of all) {
      const sample = await measure(one, round + 1, round < 0 ? (one.warming ?? 4) : SECONDS)
      if (round >= 0) samples.get(one)?.push(sample) // the first warms
    }
  return samples
}

const COLUMNS = [
  'case',
  'CPU µs/request',
  'µs more',
  'ratio',
  'to',
  'rps',
  'ratio',
  'p50 ms',
  'p99 ms',
  'failed',
  'MB',
]

function print(samples: Samples): void {
  const figures = new Map(
    [...samples].map(([{ name }, taken]) => [
      name,
      (pick: (sample: Sample) => number): number => median(taken.map(pick)),
    ]),
  )
  const cells = ({ name, beside = name, subject, refused }: Case): readonly string[] => {
    const figure = (pick: (sample: Sample) => number, of = name): number =>
      figures.get(of)?.(pick) ?? Number.NaN
    const ratio = (pick: (sample: Sample) => number): string =>
      (figure(pick) / figure(pick, beside)).toFixed(2)
    return [
      name,
      figure(({ cpu }) => cpu).toFixed(1),
      (figure(({ cpu }) => cpu) - figure(({ cpu }) => cpu, beside)).toFixed(1),
      ratio(({ cpu }) => cpu),
      beside,
      figure(({ perSecond }) => perSecond).toFixed(0),
      ratio(({ perSecond }) => perSecond),
      figure(({ p50 }) => p50).toFixed(2),
      figure(({ p99 }) => p99).toFixed(2),
      refused ? '' : String(figure(({ failed }) => failed)),
      heldMegabytes(subject.pids()).toFixed(0),
    ]
  }
  console.log(`\nCases, medians of ${ROUNDS} rounds of ${SECONDS} s\n`)
  console.log(`| ${COLUMNS.join(' | ')} |\n|${'---|'.repeat(COLUMNS.length)}`)
  for (const one of samples.keys()) console.log(`| ${cells(one).join(' | ')} |`)
}

/** Prints the table of these cases, and stops what they need. */
export async function compareOnly(all: readonly Case[]): Promise<void> {
  print(await measureAll(all))
  for (const subject of new Set(all.map(({ subject }) => subject))) subject.stop()
}

/** Prints the table. Everything but the upstream is started and stopped here. */
export async function compareCases(upstream: string): Promise<void> {
  const all = [...(await cases(upstream)), ...(await bodyCases(upstream))]
  const samples = new Map(await measureAll(all))
  const [plain] = all
  if (plain) {
    const half = await atHalfLoad(plain, median((samples.get(plain) ?? []).map((taken) => taken.perSecond)))
    for (const [one, taken] of await measureAll([half])) samples.set(one, taken)
  }
  print(samples)
  for (const subject of new Set(all.map(({ subject }) => subject))) subject.stop()
}
