/**
 * `npm run bench`: CPU time per request of a gateway's own processes, and their memory, beside others measured in the
 * same run, at 16 and at 64 connections. Rounds are interleaved and medians are told. Nothing is asserted, because
 * machines differ. `--all` adds the table of cases.
 */
import { createPublicKey } from 'node:crypto'
import type { webcrypto } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { compareCases } from './cases.ts'
import { residentMegabytes } from './cpu-time.ts'
import { median } from './exchanges.ts'
import { machine } from './machine.ts'
import { startIdlePostern, startPosternProcess } from './postern-process.ts'
import { startHaproxy, startNginxProxy, startNodeProxy, startUpstream, type Subject } from './subjects.ts'
import { wrk, type WrkResult } from './wrk.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 3)
/** Another checkout of Postern, with its `node_modules`: measured in the same run, to compare two versions. */
const BESIDE = process.env['BENCH_BESIDE']
const CONNECTIONS = [16, 64] as const
/** Seconds until the engine has compiled what a call goes through. */
const WARMING = 6
/** Milliseconds after its start at which an idle process is weighed. */
const IDLE = 60_000

interface Sample extends WrkResult {
  /** Microseconds of CPU per request. */
  readonly cpu: number
  /** Resident, right after the load. */
  readonly megabytes: number
}

async function measure(subject: Subject, seconds: number, connections: number): Promise<Sample> {
  const before = subject.cpu()
  const result = await wrk({ url: subject.url, headers: subject.headers, seconds, connections })
  const cpu = ((subject.cpu() - before) / result.requests) * 1e6
  return { ...result, cpu, megabytes: residentMegabytes(subject.pids()) }
}

/** What Postern's CPU time is to be at most, as a ratio to each, at any number of connections. */
const GOALS: Readonly<Record<string, number>> = {
  'lean node:http + undici': 1.35,
  '@fastify/reply-from': 0.84,
  '@fastify/http-proxy + @fastify/jwt': 0.68,
  'nginx plain proxy_pass': 4.1,
}

async function publicKeyOf(origin: string): Promise<string> {
  const { keys } = (await (await fetch(`${origin}/.well-known/jwks.json`)).json()) as {
    keys: webcrypto.JsonWebKey[]
  }
  const key = keys.find((jwk) => jwk.kty === 'EC') ?? {}
  return createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
}

/** Postern first: the others are told its key, and get its token. */
async function startSubjects(upstream: string): Promise<readonly [Subject, ...Subject[]]> {
  const postern = await startPosternProcess(upstream)
  const publicKey = await publicKeyOf(postern.origin)
  const beside = BESIDE && (await startPosternProcess(upstream, '', { root: BESIDE }))
  const { headers } = postern
  return [
    postern,
    ...(beside ? [{ ...beside, name: 'Postern in BENCH_BESIDE' }] : []),
    await startNodeProxy('bare', 'lean node:http + undici', { upstream, publicKey, headers }),
    await startNodeProxy('reply-from', '@fastify/reply-from', { upstream, publicKey, headers }),
    await startNodeProxy('http-proxy-jwt', '@fastify/http-proxy + @fastify/jwt', {
      upstream,
      publicKey,
      headers,
    }),
    await startHaproxy({ upstream, publicKey, headers }),
    await startNginxProxy(upstream),
  ]
}

type Samples = ReadonlyMap<Subject, ReadonlyMap<number, Sample[]>>

async function measureAll(subjects: readonly Subject[]): Promise<Samples> {
  const samples = new Map(
    subjects.map((subject) => [subject, new Map(CONNECTIONS.map((count) => [count, [] as Sample[]]))]),
  )
  for (const subject of subjects) await measure(subject, WARMING, CONNECTIONS[0])
  for (let round = 0; round < ROUNDS; round++)
    for (const count of CONNECTIONS)
      for (const [subject, taken] of samples) taken.get(count)?.push(await measure(subject, SECONDS, count))
  return samples
}

const COLUMNS = [
  'subject',
  'CPU µs/request',
  'Postern / it',
  'goal',
  'rps',
  'p50 ms',
  'p99 ms',
  'MB',
  'failed',
]

function print(samples: Samples, postern: Subject): void {
  console.log(`| connections | ${COLUMNS.join(' | ')} |\n|${'---|'.repeat(COLUMNS.length + 1)}`)
  for (const count of CONNECTIONS) {
    const figure = (subject: Subject, pick: (sample: Sample) => number): number =>
      median((samples.get(subject)?.get(count) ?? []).map(pick))
    for (const subject of samples.keys()) {
      const cpu = figure(subject, (sample) => sample.cpu)
      const row = [
        count,
        subject.name,
        cpu.toFixed(1),
        (figure(postern, (sample) => sample.cpu) / cpu).toFixed(2),
        GOALS[subject.name]?.toFixed(2) ?? '',
        figure(subject, (sample) => sample.perSecond).toFixed(0),
        figure(subject, (sample) => sample.p50).toFixed(2),
        figure(subject, (sample) => sample.p99).toFixed(2),
        figure(subject, (sample) => sample.megabytes).toFixed(0),
        figure(subject, (sample) => sample.failed),
      ]
      console.log(`| ${row.join(' | ')} |`)
    }
  }
}

/** The resident memory of a Postern that was asked for nothing, after a minute. Not the first start: it strips types. */
async function weighIdle(upstream: string): Promise<number> {
  const idle = await startIdlePostern(upstream)
  await pause(IDLE)
  const megabytes = residentMegabytes(idle.pids())
  idle.stop()
  return megabytes
}

console.log(machine())
const upstream = await startUpstream()
const subjects = await startSubjects(upstream.url)
const samples = await measureAll(subjects)
console.log(`GET 1 KB, warm token, one worker; medians of ${ROUNDS} rounds of ${SECONDS} s\n`)
print(samples, subjects[0])
for (const subject of subjects) subject.stop()
const idle = await weighIdle(upstream.url)
console.log(
  `\nPostern idle, config/upstream.yaml, after a minute: ${idle.toFixed(0)} MB (goal 150, at load 200)`,
)
if (process.argv.includes('--all')) await compareCases(upstream.url)
upstream.stop()
process.exit(0)
