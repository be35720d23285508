/**
 * `npm run bench`: what calls cost, as CPU time per request of a gateway's own processes, beside others measured in the
 * same run; then memory and the start. Slices of a second are interleaved, and a ratio is the median of those of the
 * slices of one round. Nothing is asserted, because machines differ. Postern is measured twice, so that the noise shows.
 *
 * `npm run bench -- WORD…` measures only what is named so: calls by a part of their name, `memory`, `start`, `bodies`. `--all` adds
 * the table of cases.
 */
import { createPublicKey } from 'node:crypto'
import type { webcrypto } from 'node:crypto'
import type { JsonValue } from '../../../src/base/http/body/json.ts'
import { writeXml } from '../../../src/base/http/xml/write.ts'
import { forgeTokens } from './access-tokens.ts'
import { bodyCases } from './bodies.ts'
import { compareCases, compareOnly } from './cases.ts'
import { median } from './exchanges.ts'
import { machine } from './machine.ts'
import { compareMemory } from './memory.ts'
import { startPosternProcess, type PosternSubject } from './postern-process.ts'
import { compareStarts } from './start.ts'
import {
  ACTIONS_YAML,
  HAPROXY,
  NGINX,
  NODE_PROXIES,
  PATH,
  PATH_1_KB,
  PATH_100_KB,
  PATH_1_MB,
  PATH_FILE,
  rowsOfFunds,
  startHaproxy,
  startNginxProxy,
  startNodeProxy,
  startUpstream,
  type Subject,
} from './subjects.ts'
import { wrk, type WrkResult } from './wrk.ts'
import { bodyScript, tokenScript } from './wrk-scripts.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 15)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 1)
/** Another checkout of Postern, with its `node_modules`: measured in the same run, to compare two versions. */
const BESIDE = process.env['BENCH_BESIDE']
/** Seconds until the engine has compiled what a call goes through. */
const WARMING = 6
/** Tokens, more than are spent in a slice. */
const FRESH = 30_000

/** The part of a request that is not the same in XML and in JSON. */
interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  /** A wrk script. */
  readonly script?: string
}

/** A kind of call, the others that it is measured beside, and what Postern's CPU time is to be at most as a ratio to each. */
interface Calls extends Sent {
  readonly name: string
  readonly connections: number
  readonly path: string
  readonly goals: Readonly<Record<string, number | undefined>>
  /** The same call in JSON. Present if the calls are in XML. */
  readonly inJson?: Sent
  /** Each call brings a token that was never seen before. */
  readonly freshTokens?: true
}

const { bare } = NODE_PROXIES
const OTHERS = {
  [NODE_PROXIES['reply-from']]: 0.84,
  [NODE_PROXIES['http-proxy-jwt']]: 0.68,
  [HAPROXY]: 0.4,
  [NGINX]: 2.3,
}

/** The first Postern again, called in JSON where the calls are in XML. */
const IN_JSON = 'the same Postern, in JSON'
const FUNDS = rowsOfFunds(1024)
const FUNDS_XML = writeXml(JSON.parse(FUNDS) as JsonValue, 'ApiRequest').toString()
const XML = { Accept: 'application/xml' }

const CALLS: readonly Calls[] = [
  { name: 'GET 1 KB', connections: 16, path: PATH, goals: { [bare]: 1.15, ...OTHERS } },
  { name: 'GET 1 KB', connections: 64, path: PATH, goals: { [bare]: 1.18, ...OTHERS } },
  { name: 'JSON 100 KB', connections: 16, path: PATH_100_KB, goals: { [bare]: 1.6 } },
  { name: 'JSON 1 MB', connections: 16, path: PATH_1_MB, goals: { [bare]: 2.5 } },
  { name: '10 MB as they are', connections: 4, path: PATH_FILE, goals: { [bare]: 1.3 } },
  {
    name: 'new connection',
    connections: 16,
    path: PATH,
    goals: { [bare]: 1.4 },
    headers: { Connection: 'close' },
  },
  {
    name: 'token first seen',
    connections: 16,
    path: PATH,
    goals: { [NODE_PROXIES['bare-jose']]: 1.3 },
    freshTokens: true,
  },
  {
    name: 'XML 1 KB',
    connections: 16,
    path: PATH_1_KB,
    goals: { [IN_JSON]: 1.3 },
    headers: XML,
    inJson: {},
  },
  {
    name: 'XML 100 KB',
    connections: 16,
    path: PATH_100_KB,
    goals: { [IN_JSON]: 6 },
    headers: XML,
    inJson: {},
  },
  {
    name: 'POST XML 1 KB',
    connections: 16,
    path: PATH_1_KB,
    goals: { [IN_JSON]: 1.6 },
    headers: XML,
    script: await bodyScript(FUNDS_XML, 'application/xml'),
    inJson: { script: await bodyScript(FUNDS) },
  },
]

interface Sample extends WrkResult {
  /** Microseconds of CPU per request. */
  readonly cpu: number
}

interface Measured {
  readonly subject: Subject
  /** It is sent `inJson` of the calls. */
  readonly inJson?: true
  /** Whose tokens it accepts. */
  readonly issuer: PosternSubject
}

async function publicKeyOf(origin: string): Promise<string> {
  const { keys } = (await (await fetch(`${origin}/.well-known/jwks.json`)).json()) as {
    keys: webcrypto.JsonWebKey[]
  }
  const key = keys.find((jwk) => jwk.kty === 'EC') ?? {}
  return createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
}

/** Postern first: the others are told its key, and get its token. */
async function startSubjects(upstream: string): Promise<readonly [Measured, ...Measured[]]> {
  const postern = await startPosternProcess(upstream, ACTIONS_YAML)
  const again = await startPosternProcess(upstream, ACTIONS_YAML)
  const beside = BESIDE && (await startPosternProcess(upstream, ACTIONS_YAML, { root: BESIDE }))
  const facts = { upstream, publicKey: await publicKeyOf(postern.origin), headers: postern.headers }
  const kinds = Object.keys(NODE_PROXIES) as (keyof typeof NODE_PROXIES)[]
  const others = [
    ...(await Promise.all(kinds.map((kind) => startNodeProxy(kind, facts)))),
    await startHaproxy(facts),
    await startNginxProxy(upstream),
  ]
  const own = (subject: PosternSubject, name: string): Measured => ({
    subject: { ...subject, name },
    issuer: subject,
  })
  return [
    own(postern, 'Postern, every check, log and metric on'),
    own(again, 'the same once more'),
    ...(beside ? [own(beside, 'Postern in BENCH_BESIDE')] : []),
    { subject: { ...postern, name: IN_JSON }, issuer: postern, inJson: true },
    ...others.map((subject) => ({ subject, issuer: postern })),
  ]
}

async function measure(
  { subject, issuer, inJson }: Measured,
  calls: Calls,
  seconds = SECONDS,
): Promise<Sample> {
  const sent = (inJson && calls.inJson) ?? calls
  const script = calls.freshTokens
    ? await tokenScript(await forgeTokens(issuer, 'ES256', Math.ceil(FRESH * seconds)))
    : sent.script
  const before = subject.cpu()
  const result = await wrk({
    url: subject.origin + calls.path,
    headers: { ...(!calls.freshTokens && subject.headers), ...sent.headers },
    seconds,
    connections: calls.connections,
    ...(script !== undefined && { script }),
  })
  if (calls.freshTokens && result.requests > FRESH * seconds) throw new Error('FRESH is too low')
  return { ...result, cpu: ((subject.cpu() - before) / result.requests) * 1e6 }
}

const COLUMNS = [
  'calls',
  'connections',
  'subject',
  'CPU µs/request',
  'Postern / it',
  'quartiles',
  'goal',
  'rps',
  'p50 ms',
  'p99 ms',
  'failed',
]

const quartile = (values: readonly number[], part: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) * part)] ?? Number.NaN

/** Measures one kind of calls, and prints its rows. */
async function compareCalls(calls: Calls, subjects: readonly [Measured, ...Measured[]]): Promise<void> {
  const [postern] = subjects
  const compared = subjects.filter(
    ({ subject, issuer, inJson }) => subject.name in calls.goals || (issuer.pids === subject.pids && !inJson),
  )
  for (const each of compared) await measure(each, calls, WARMING)
  const samples = new Map(compared.map((each) => [each, [] as Sample[]]))
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [each, taken] of samples) taken.push(await measure(each, calls))
  const own = samples.get(postern) ?? []
  for (const [{ subject }, taken] of samples) {
    const figure = (pick: (sample: Sample) => number): number => median(taken.map(pick))
    const ratios = taken.map(({ cpu }, round) => (own[round]?.cpu ?? Number.NaN) / cpu)
    const row = [
      calls.name,
      calls.connections,
      subject.name,
      figure(({ cpu }) => cpu).toFixed(1),
      median(ratios).toFixed(2),
      `${quartile(ratios, 0.25).toFixed(2)}–${quartile(ratios, 0.75).toFixed(2)}`,
      calls.goals[subject.name]?.toFixed(2) ?? '',
      figure(({ perSecond }) => perSecond).toFixed(0),
      figure(({ p50 }) => p50).toFixed(2),
      figure(({ p99 }) => p99).toFixed(2),
      figure(({ failed }) => failed),
    ]
    console.log(`| ${row.join(' | ')} |`)
  }
}

const words = process.argv.slice(2).filter((word) => word !== '--all')
const isWanted = (name: string): boolean => words.length === 0 || words.some((word) => name.includes(word))

console.log(machine())
const upstream = await startUpstream()
const wanted = CALLS.filter(({ name }) => isWanted(name))
if (wanted.length > 0) {
  const subjects = await startSubjects(upstream.url)
  console.log(`\nCalls, warm token, one worker; medians of ${ROUNDS} rounds of ${SECONDS} s\n`)
  console.log(`| ${COLUMNS.join(' | ')} |\n|${'---|'.repeat(COLUMNS.length)}`)
  for (const calls of wanted) await compareCalls(calls, subjects)
  for (const { subject } of subjects) subject.stop()
}
if (isWanted('memory')) await compareMemory(upstream.url, BESIDE)
if (isWanted('start')) await compareStarts(BESIDE)
if (words.includes('bodies')) await compareOnly(await bodyCases(upstream.url))
if (process.argv.includes('--all')) await compareCases(upstream.url)
upstream.stop()
process.exit(0)
