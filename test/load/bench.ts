/**
 * `npm run bench`: CPU time per request of the gateway's own processes, as ratios to others measured in the same run.
 * Rounds are interleaved, medians are told; nothing is asserted, since machines differ. `--all` adds the table of cases.
 */
import { createPublicKey } from 'node:crypto'
import type { webcrypto } from 'node:crypto'
import { compareCases } from './cases.ts'
import {
  startHaproxy,
  startNginxProxy,
  startNodeProxy,
  startPosternProcess,
  startUpstream,
  type Subject,
} from './subjects.ts'
import { wrk, type WrkResult } from './wrk.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 3)
/** Another checkout of Postern, with its `node_modules`: measured in the same run, to compare two versions. */
const BESIDE = process.env['BENCH_BESIDE']
/** Seconds until the engine has compiled what a call goes through. */
const WARMING = 6

interface Sample extends WrkResult {
  /** Microseconds of CPU per request. */
  readonly cpu: number
}

async function measure(subject: Subject, seconds: number): Promise<Sample> {
  const before = subject.cpu()
  const result = await wrk({ url: subject.url, headers: subject.headers, seconds })
  return { ...result, cpu: ((subject.cpu() - before) / result.requests) * 1e6 }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** What Postern's figure is to be at most, as a ratio to each. */
const GOALS: Readonly<Record<string, number>> = {
  'bare node:http + undici': 1.25,
  '@fastify/reply-from as shipped': 0.75,
  'HAProxy + jwt_verify ES256': 0.7,
  '@fastify/http-proxy + @fastify/jwt': 0.55,
  'nginx plain proxy_pass': 3.5,
}

async function publicKeyOf(origin: string): Promise<string> {
  const { keys } = (await (await fetch(`${origin}/.well-known/jwks.json`)).json()) as {
    keys: webcrypto.JsonWebKey[]
  }
  const key = keys.find((jwk) => jwk.kty === 'EC') ?? {}
  return createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
}

const upstream = await startUpstream()
const postern = await startPosternProcess(upstream.url)
const publicKey = await publicKeyOf(postern.origin)
const token = (postern.headers['Authorization'] ?? '').slice('Bearer '.length)
const beside: Subject[] =
  BESIDE === undefined
    ? []
    : [
        {
          ...(await startPosternProcess(upstream.url, '', { root: BESIDE })),
          name: 'Postern as in BENCH_BESIDE',
        },
      ]
const subjects: Subject[] = [
  postern,
  ...beside,
  await startNodeProxy('bare', 'bare node:http + undici', upstream.url),
  await startNodeProxy('reply-from', '@fastify/reply-from as shipped', upstream.url),
  await startNodeProxy('http-proxy-jwt', '@fastify/http-proxy + @fastify/jwt', upstream.url, {
    publicKey,
    token,
  }),
  await startHaproxy(upstream.url, publicKey, token),
  await startNginxProxy(upstream.url),
]

const samples = new Map<Subject, Sample[]>(subjects.map((subject) => [subject, []]))
for (const subject of subjects) await measure(subject, WARMING)
for (let round = 0; round < ROUNDS; round++)
  for (const subject of subjects) samples.get(subject)?.push(await measure(subject, SECONDS))

const figure = (subject: Subject, pick: (sample: Sample) => number): number =>
  median((samples.get(subject) ?? []).map(pick))
const own = figure(postern, (sample) => sample.cpu)
console.log(`GET 1 KB, warm token, one worker; medians of ${ROUNDS} rounds of ${SECONDS} s\n`)
console.log('| subject | CPU µs/request | Postern / it | goal | rps | p50 ms | p99 ms | failed |')
console.log('|---|---|---|---|---|---|---|---|')
for (const subject of subjects) {
  const cpu = figure(subject, (sample) => sample.cpu)
  const row = [
    subject.name,
    cpu.toFixed(1),
    (own / cpu).toFixed(2),
    GOALS[subject.name]?.toFixed(2) ?? '',
    figure(subject, (sample) => sample.perSecond).toFixed(0),
    figure(subject, (sample) => sample.p50).toFixed(2),
    figure(subject, (sample) => sample.p99).toFixed(2),
    String(figure(subject, (sample) => sample.failed)),
  ]
  console.log(`| ${row.join(' | ')} |`)
}
for (const subject of subjects) subject.stop()
if (process.argv.includes('--all')) await compareCases(upstream.url)
upstream.stop()
process.exit(0)
