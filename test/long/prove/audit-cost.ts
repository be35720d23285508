/**
 * `npm run prove audit-cost`: CPU time of a change's two records, and how long its intent takes to be durable, with one process and
 * with four, whose records one more writes. `TREES`, paths of working trees with a comma between them, compares those, in turns;
 * `ROUNDS` and `PAIRS` change the numbers.
 */
import { type ChildProcess, fork, spawnSync, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { type OnReadOpts, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type * as Sent from '../../../src/extensions/audit/write/sent-trail.ts'
import type * as Writing from '../../../src/extensions/audit/write/writing-trail.ts'
import type { AuditEntry, AuditTrail } from '../../../src/base/contracts/records/audit.ts'
import { moduleOf } from '../../support/other-checkout.ts'

interface Cost {
  /** Microseconds of CPU for each pair of records, of all threads and processes, with the caller's own share. */
  readonly cpu: number
  /** Milliseconds until an intent is durable: the median. */
  readonly p50: number
}

const ROUNDS = Number(process.env['ROUNDS'] ?? 11)
const PAIRS = Number(process.env['PAIRS'] ?? 20_000)
const TREES = (process.env['TREES'] ?? join(import.meta.dirname, '../../..')).split(',')
/** Durability, processes that record, and callers of each. A pair that is synced takes a hundred times as long. */
const CASES = [
  { durability: 'system', processes: 1, callers: 16, pairs: PAIRS },
  { durability: 'system', processes: 1, callers: 64, pairs: PAIRS },
  { durability: 'disk', processes: 1, callers: 1, pairs: PAIRS / 40 },
  { durability: 'disk', processes: 1, callers: 16, pairs: PAIRS / 10 },
  { durability: 'system', processes: 4, callers: 16, pairs: PAIRS },
  { durability: 'disk', processes: 4, callers: 1, pairs: PAIRS / 40 },
  { durability: 'disk', processes: 4, callers: 16, pairs: PAIRS / 10 },
] as const
type Case = (typeof CASES)[number]

const BODY = Buffer.from('{"Status":"Active"}')
const ID = 'ab'.repeat(16)
const ABOUT = {
  requestId: ID,
  traceId: ID,
  actor: { kind: 'user', subject: 'a3b9c1d2', client: 'portal' },
  on: { business: 'ACME', fund: 'SUPER1', area: 'members', action: 'update', method: 'PUT' },
} as const

const intentOf = (body: string): AuditEntry => ({
  ...{ event: 'call.intended', outcome: 'pending', ...ABOUT },
  call: { version: 1, type: 'application/json', bytes: BODY.length, body },
  personal: { 'actor.address': '203.0.113.7', 'on.params.memberId': '1234567' },
})
const outcomeOf = (intent: number): AuditEntry => ({
  ...{ event: 'call.settled', outcome: 'success', ...ABOUT, intent },
  call: { status: 200, upstreamStatus: 200, ms: 12 },
})

/** Makes pairs of records, as so many callers at once. Returns how long each intent took. */
async function makePairs(trail: AuditTrail, callers: number, pairs: number): Promise<number[]> {
  const times: number[] = []
  let left = pairs
  const call = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const hash = trail.bodyHash()
      hash.update(BODY)
      const start = performance.now()
      const intent = await trail.require(intentOf(hash.digest()))
      times.push(performance.now() - start)
      await new Promise((resolve) => setImmediate(resolve))
      await trail.settle(outcomeOf(intent))
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return times
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN

const WRITE = 'extensions/audit/write'
/** Where these files were before the trail was an extension. */
const FORMER = 'state/audit/write'
const clock = { now: () => Date.now(), monotonic: () => performance.now() }
const parts = {
  clock,
  recorder: { note: (...told: unknown[]) => console.error(...told) },
  bodyKey: 'k'.repeat(43),
}
const TIMEOUT = 20_000

/** Before one process wrote for all, each had a trail of its own, which its module opened. */
const isApart = (tree: string): boolean =>
  ![WRITE, FORMER].some((folder) => existsSync(join(tree, 'src', folder, 'writing-trail.ts')))

async function openHere(tree: string, folder: string, { durability }: Case): Promise<Writing.WritingTrail> {
  const name = isApart(tree) ? 'trail.ts' : 'writing-trail.ts'
  const { openTrail } = (await moduleOf(tree, `${WRITE}/${name}`)) as typeof Writing
  return openTrail({ folder, durability, timeout: TIMEOUT }, parts)
}

/** The trail of a process beside the one that writes. */
async function openBeside(tree: string, folder: string, asked: Case) {
  if (isApart(tree)) return openHere(tree, folder, asked)
  const { SentTrail } = (await moduleOf(tree, `${WRITE}/sent-trail.ts`)) as typeof Sent
  const way = {
    records: new Socket({ fd: 4, readable: false, writable: true }),
    openProgress: (onread: OnReadOpts) => new Socket({ fd: 5, readable: true, writable: false, onread }),
  }
  return new SentTrail(way, { ...parts, timeout: TIMEOUT })
}

/** Microseconds of CPU since then. */
function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** The measures of one process. */
interface Measured {
  readonly cpu: number
  readonly times: readonly number[]
}

async function recordPairs(trail: AuditTrail, { callers, pairs, processes }: Case): Promise<Measured> {
  const before = process.cpuUsage()
  const times = await makePairs(trail, callers, pairs / processes)
  return { cpu: cpuSince(before), times }
}

/** In a process of its own, so that all its CPU time belongs to the records. */
async function measure(tree: string, asked: Case): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-audit-cost-'))
  const trail = await openHere(tree, folder, asked)
  const measured =
    asked.processes === 1
      ? [await measureHere(trail, asked)]
      : await measureBeside(tree, folder, asked, trail)
  await trail.close()
  rmSync(folder, { recursive: true })
  const cpu = measured.reduce((sum, each) => sum + each.cpu, 0)
  return { cpu: cpu / asked.pairs, p50: median(measured.flatMap(({ times }) => times)) }
}

async function measureHere(trail: AuditTrail, asked: Case): Promise<Measured> {
  await makePairs(trail, asked.callers, asked.pairs / 4)
  return recordPairs(trail, asked)
}

async function measureBeside(
  tree: string,
  folder: string,
  asked: Case,
  trail: Writing.WritingTrail,
): Promise<readonly Measured[]> {
  const stdio: StdioOptions = ['ignore', 'inherit', 'inherit', 'ipc', 'pipe', 'pipe']
  const children = Array.from({ length: asked.processes }, () => {
    const child = fork(import.meta.filename, [tree, JSON.stringify(asked), folder], { stdio })
    const [records, progress] = (child.stdio as readonly unknown[]).slice(4) as [Duplex, Duplex]
    if (!isApart(tree)) trail.take({ records, progress })
    return child
  })
  const told = (child: ChildProcess): Promise<unknown[]> => once(child, 'message')
  await Promise.all(children.map(told))
  const before = process.cpuUsage()
  const done = children.map(told)
  for (const child of children) child.send('go')
  const measured = (await Promise.all(done)).map(([message]) => message as Measured)
  const own = { cpu: cpuSince(before), times: [] }
  await Promise.all(children.map((child) => (child.send('end'), once(child, 'exit'))))
  return [...measured, own]
}

/** One of the processes beside. */
async function measureAsChild(tree: string, asked: Case, folder: string): Promise<void> {
  const trail = await openBeside(tree, folder, asked)
  await makePairs(trail, asked.callers, asked.pairs / asked.processes / 4)
  process.on('message', (message) => {
    if (message === 'go') void recordPairs(trail, asked).then((measured) => process.send?.(measured))
    else void trail.close().then(() => process.disconnect?.())
  })
  process.send?.('ready')
}

function measureApart(tree: string, asked: Case): Cost {
  const args = [import.meta.filename, tree, JSON.stringify(asked)]
  const { stdout } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return JSON.parse(stdout) as Cost
}

function compare(asked: Case): void {
  const costs = new Map<string, Cost[]>(TREES.map((tree) => [tree, []]))
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [tree, list] of costs) list.push(measureApart(tree, asked))
  for (const [tree, list] of costs) {
    const cpu = median(list.map((cost) => cost.cpu)).toFixed(1)
    const p50 = median(list.map((cost) => cost.p50)).toFixed(2)
    console.log(
      `${asked.durability}, ${asked.processes} × ${asked.callers} callers: ${cpu} µs CPU a pair, p50 ${p50} ms  ${tree}`,
    )
  }
}

const [tree, asked, folder] = process.argv.slice(2)
if (tree !== undefined && asked !== undefined && folder !== undefined)
  await measureAsChild(tree, JSON.parse(asked) as Case, folder)
else if (tree !== undefined && asked !== undefined)
  console.log(JSON.stringify(await measure(tree, JSON.parse(asked) as Case)))
else for (const one of CASES) compare(one)
