/**
 * The further table of `npm run bench -- --all`: what else a call may be, beside the plain one with a warm token. Rounds
 * are interleaved here too; a ratio is that of CPU time per request to the case that it names.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { residentMegabytes } from './cpu-time.ts'
import { forgeTokens } from './access-tokens.ts'
import { newFolder, PATH, startPosternProcess, startUpstream, type PosternSubject } from './subjects.ts'
import { wrk, type WrkResult } from './wrk.ts'

const ROUNDS = 3
const SECONDS = 2
/** More than are spent in the seconds of one round. */
const FRESH = { ES256: 12_000, RS256: 12_000 }
const LIVE = 100_000
/** Time for every live token to be seen once. */
const LIVE_SECONDS = 45

interface Case {
  readonly name: string
  readonly subject: PosternSubject
  /** The case that its cost is set beside. */
  readonly beside?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** wrk scripts, one per round: what was seen in one round is not new in the next. */
  readonly scripts?: readonly string[]
  /** Seconds of load before the first round. */
  readonly warming?: number
  /** Answers that are refusals by intent. */
  readonly refused?: true
}

interface Sample extends WrkResult {
  readonly cpu: number
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

async function measure(one: Case, round: number, seconds = SECONDS): Promise<Sample> {
  const { subject, path = PATH } = one
  const script = one.scripts?.[round % one.scripts.length]
  const before = subject.cpu()
  const result = await wrk({
    url: subject.origin + path,
    headers: one.headers ?? subject.headers,
    seconds,
    ...(script !== undefined && { script }),
  })
  return { ...result, cpu: ((subject.cpu() - before) / result.requests) * 1e6 }
}

const bearerOf = ({ headers }: PosternSubject): string => (headers['Authorization'] ?? '').slice(7)

/** A wrk script that sends the tokens one after the other, from the first one or from anywhere. */
async function tokenScript(tokens: readonly string[], random = false): Promise<string> {
  const folder = await newFolder()
  await writeFile(join(folder, 'tokens'), tokens.join('\n'))
  const script = join(folder, 'tokens.lua')
  await writeFile(
    script,
    `math.randomseed(os.time())
local tokens, at = {}, ${random ? 'nil' : '0'}
for line in io.lines("${folder}/tokens") do tokens[#tokens + 1] = "Bearer " .. line end
request = function()
  at = (at or math.random(#tokens)) % #tokens + 1
  return wrk.format("GET", nil, { ["Authorization"] = tokens[at] })
end`,
  )
  return script
}

async function distinctScript(): Promise<string> {
  const script = join(await newFolder(), 'distinct.lua')
  await writeFile(
    script,
    `local at = 0
request = function()
  at = at + 1
  return wrk.format("GET", "${PATH}?n=" .. at)
end`,
  )
  return script
}

async function freshScripts(
  subject: PosternSubject,
  algorithm: 'ES256' | 'RS256',
): Promise<readonly string[]> {
  const scripts: string[] = []
  for (let round = 0; round <= ROUNDS; round += 1)
    scripts.push(
      await tokenScript(await forgeTokens(subject, bearerOf(subject), algorithm, FRESH[algorithm])),
    )
  return scripts
}

/** A deployment with so many actions, the one that is called last of them. */
function actionsYaml(count: number): string {
  const action = (name: string): string =>
    `  - { level: business, area: fund-data, action: ${name}, methods: { GET: { scopes: { any: [fund.read] } } } }`
  const others = Array.from({ length: count - 1 }, (_, index) => action(`other-${index}`))
  return ['actions:', ...others, action('fund-list'), ''].join('\n')
}

async function cases(small: string, large: string): Promise<readonly Case[]> {
  const plain = await startPosternProcess(small)
  const big = await startPosternProcess(large)
  const ten = await startPosternProcess(small, actionsYaml(10))
  const thousands = await startPosternProcess(small, actionsYaml(10_000))
  const two = await startPosternProcess(small, 'workers: 2\n')
  const many = await startPosternProcess(small, 'tokenCache: { size: 256MiB }\n')
  const live = await tokenScript(await forgeTokens(many, bearerOf(many), 'ES256', LIVE), true)
  const xml = (subject: PosternSubject) => ({ ...subject.headers, Accept: 'application/xml' })
  const warm = 'warm token, 1 KB'
  return [
    { name: warm, subject: plain },
    { name: 'token never seen before, ES256', subject: plain, scripts: await freshScripts(plain, 'ES256') },
    { name: 'token never seen before, RS256', subject: plain, scripts: await freshScripts(plain, 'RS256') },
    { name: 'refused, 401', subject: plain, headers: {}, refused: true },
    { name: 'refused, 404', subject: plain, path: '/api/1.0/b/ACME/fund-data/none', refused: true },
    { name: 'a query of its own in each call', subject: plain, scripts: [await distinctScript()] },
    { name: 'JSON to XML, 1 KB', subject: plain, headers: xml(plain) },
    { name: '100 KB', subject: big },
    { name: 'JSON to XML, 100 KB', subject: big, headers: xml(big), beside: '100 KB' },
    { name: '10 actions', subject: ten },
    { name: '10,000 actions', subject: thousands, beside: '10 actions' },
    { name: `${LIVE} live tokens`, subject: many, scripts: [live], warming: LIVE_SECONDS },
    { name: '2 workers', subject: two },
  ].map((one) => ({ beside: warm, ...one })) as readonly Case[]
}

/** Prints the table. The upstream of 1 KB is given; everything else is started and stopped here. */
export async function compareCases(small: string): Promise<void> {
  const large = await startUpstream(100 * 1024)
  const all = await cases(small, large.url)
  const samples = new Map<string, Sample[]>(all.map(({ name }) => [name, []]))
  for (let round = -1; round < ROUNDS; round += 1)
    for (const one of all) {
      const sample = await measure(one, round + 1, round < 0 ? one.warming : SECONDS)
      if (round >= 0) samples.get(one.name)?.push(sample) // the first warms
    }
  const figure = (name: string, pick: (sample: Sample) => number): number =>
    median((samples.get(name) ?? []).map(pick))
  console.log(`\nCases, medians of ${ROUNDS} rounds of ${SECONDS} s\n`)
  console.log('| case | CPU µs/request | ratio | to | rps | ratio | p50 ms | p99 ms | failed | MB |')
  console.log('|---|---|---|---|---|---|---|---|---|---|')
  for (const { name, beside = name, subject, refused } of all) {
    const cpu = figure(name, (sample) => sample.cpu)
    const rps = figure(name, (sample) => sample.perSecond)
    const row = [
      name,
      cpu.toFixed(1),
      (cpu / figure(beside, (sample) => sample.cpu)).toFixed(2),
      beside,
      rps.toFixed(0),
      (rps / figure(beside, (sample) => sample.perSecond)).toFixed(2),
      figure(name, (sample) => sample.p50).toFixed(2),
      figure(name, (sample) => sample.p99).toFixed(2),
      refused ? '' : String(figure(name, (sample) => sample.failed)),
      residentMegabytes(subject.pids()).toFixed(0),
    ]
    console.log(`| ${row.join(' | ')} |`)
  }
  for (const subject of new Set(all.map(({ subject }) => subject))) subject.stop()
  large.stop()
}
