/**
 * `node test/long/prove/login-floods.ts [--code FOLDER] [--seconds 15] [--rate 50]`: who is kept from logging in by floods of
 * logins that fail, and what slows a guesser down (C6.3.5). `--code` takes the service from another checkout.
 *
 * Floods go to a service of its own on a free port; delays are reckoned on a clock that does not wait.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import type * as app from '../../../src/serve/start/service.ts'
import type * as lockouts from '../../../src/identity/guessing/lockouts.ts'
import type * as clocks from '../../../src/base/kernel/clock.ts'
import { moduleOf, readerOf } from '../../support/other-checkout.ts'

const OWN = fileURLToPath(new URL('../../..', import.meta.url))
const { values: options } = parseArgs({
  options: {
    code: { type: 'string', default: OWN },
    seconds: { type: 'string', default: '15' },
    rate: { type: 'string', default: '50' },
  },
})
const SECONDS = Number(options.seconds)
const RATE = Number(options.rate)

const from = (file: string): Promise<unknown> => moduleOf(options.code, file)
const { startPostern } = (await from('serve/start/service.ts')) as typeof app
const readConfiguration = await readerOf(options.code)
const { LocalLockouts } = (await from('identity/guessing/lockouts.ts')) as typeof lockouts
const { systemClock } = (await from('base/kernel/clock.ts')) as typeof clocks

interface Login {
  readonly client: string
  readonly secret: string
  readonly user: string
  readonly password: string
}

interface Outcome {
  readonly status: number
  readonly ms: number
}

const RIGHT: Login = {
  client: 'acme-books',
  secret: 'acme-books-secret',
  user: 'alice',
  password: 'alice-password',
}

async function logIn(
  port: number,
  agent: Agent,
  { client, secret, user, password }: Login,
): Promise<Outcome> {
  const started = performance.now()
  const form = { grant_type: 'password', username: user, password, scope: 'fund.read target:b/ACME' }
  const sent = request({
    port,
    agent,
    method: 'POST',
    path: '/connect/token',
    headers: {
      Authorization: `Basic ${Buffer.from(`${client}:${secret}`).toString('base64')}`,
      'Content-Type': 'application/x-www-form-urlencoded',
    },
  })
  sent.end(String(new URLSearchParams(form)))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return { status: response.statusCode ?? 0, ms: performance.now() - started }
}

/** What a flood is made of: the n-th login of it. */
const FLOODS: Readonly<Record<string, (at: number) => Login>> = {
  none: () => RIGHT,
  'invented clients': (at) => ({ ...RIGHT, client: `nobody-${at}` }),
  'invented users': (at) => ({ ...RIGHT, user: `nobody-${at}` }),
  'wrong secrets of one client': () => ({ ...RIGHT, secret: 'wrong' }),
}

const spread = (outcomes: readonly Outcome[]): string => {
  const times = outcomes.map(({ ms }) => ms).sort((a, b) => a - b)
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? NaN).toFixed(0)
  return `median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(0.9999)} ms`
}

/** Sends the flood from a thread of its own, so that this one measures the service and not itself. */
function flood(port: number, kind: string): Worker {
  return new Worker(fileURLToPath(import.meta.url), {
    workerData: { port, kind },
    argv: process.argv.slice(2),
  })
}

async function underFlood(kind: string): Promise<void> {
  const data = await mkdtemp(join(tmpdir(), 'postern-prove-'))
  const environment = { POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0', POSTERN_DATA: data }
  const { configuration } = readConfiguration(join(OWN, 'config/demo.yaml'), environment)
  if (configuration === undefined) throw new Error('the demo world cannot be read')
  const quiet = { write: () => undefined }
  const service = await startPostern(configuration, {
    clock: systemClock,
    environment,
    logDestination: quiet,
  })
  const agent = new Agent({ keepAlive: true })
  const port = service.pool.port
  await logIn(port, agent, RIGHT)
  const attacker = kind === 'none' ? undefined : flood(port, kind)
  await pause(2000)
  const logins: Promise<Outcome>[] = []
  for (let at = 0; at < SECONDS * 2; at++) {
    logins.push(logIn(port, agent, RIGHT))
    await pause(500)
  }
  const outcomes = await Promise.all(logins)
  const told = attacker && once(attacker, 'message')
  attacker?.postMessage('stop')
  const [answers] = ((await told) ?? [{}]) as [object]
  await attacker?.terminate()
  const good = outcomes.filter(({ status }) => status === 200)
  console.log(
    `${kind.padEnd(28)} ${good.length} of ${outcomes.length} logins; ${spread(good)}; the flood: ${JSON.stringify(answers)}`,
  )
  agent.destroy()
  await service.close()
  await rm(data, { recursive: true, force: true })
}

const RULES = {
  attempts: { free: 5, delay: 500, longest: 30_000 },
  networks: { free: 1e9, delay: 250, longest: 5000 },
  accounts: { free: 100, delay: 1000, longest: 30_000, waiting: 4 },
  forget: 900_000,
  waiting: 32,
}

/** Lockouts whose waits pass at once, and are added up. Hashing takes no time here. */
function reckoned() {
  const clock = { at: 1_800_000_000_000, now: () => clock.at, monotonic: () => clock.at }
  const waits: number[] = []
  const counting = new LocalLockouts(RULES, clock, (ms) => {
    waits.push(ms)
    clock.at += ms
    return Promise.resolve()
  })
  const fail = async (user: string, network: string, known: boolean): Promise<void> => {
    const turn = await counting.enter({ user, client: '', network }, { nameExists: known, familiar: false })
    await turn.end(false)
  }
  return { waits, fail }
}

async function flushed(): Promise<void> {
  const { waits, fail } = reckoned()
  for (let at = 0; at < 10; at++) await fail('alice', '192.0.2.7', true)
  const before = waits.at(-1) ?? 0
  for (let at = 0; at < 20_400; at++) await fail(`nobody-${at}`, '198.51.100.1', false)
  waits.length = 0
  await fail('alice', '192.0.2.7', true)
  console.log(
    `20,400 invented names: the victim's next attempt waited ${before} ms, and waits ${waits[0] ?? 0} ms`,
  )
}

async function fromEverywhere(): Promise<void> {
  const { waits, fail } = reckoned()
  for (let at = 0; at < 200; at++) await fail('alice', `198.51.${at}.1`, true)
  const total = waits.reduce((sum, ms) => sum + ms, 0)
  console.log(`200 guesses from 200 networks: ${(total / 1000).toFixed(0)} s of waiting in all`)
}

async function attack(
  port: number,
  kind: string,
  stopped: Promise<unknown>,
): Promise<Record<string, number>> {
  const agent = new Agent({ keepAlive: true })
  const answers: Record<string, number> = {}
  const loginOf = FLOODS[kind] ?? (() => RIGHT)
  const told = new AbortController()
  void stopped.then(() => told.abort())
  for (let at = 0; !told.signal.aborted; at++) {
    void logIn(port, agent, loginOf(at)).then(
      ({ status }) => (answers[status] = (answers[status] ?? 0) + 1),
      () => undefined,
    )
    await pause(1000 / RATE)
  }
  return answers
}

const { isMainThread, parentPort, workerData } = await import('node:worker_threads')
if (isMainThread) {
  await flushed()
  await fromEverywhere()
  for (const kind of Object.keys(FLOODS)) await underFlood(kind)
  process.exit(0)
} else if (parentPort !== null) {
  const { port, kind } = workerData as { readonly port: number; readonly kind: string }
  parentPort.postMessage(await attack(port, kind, once(parentPort, 'message')))
}
