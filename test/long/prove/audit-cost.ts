/**
 * `npm run prove audit-cost`: CPU time of a change's two records, and how long its intent takes to be durable, with 1, 16
 * and 64 callers. `TREES`, paths of working trees with a comma between them, compares those, in turns; `ROUNDS` and `PAIRS`
 * change the numbers.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type * as Trail from '../../../src/state/audit/write/trail.ts'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import { moduleOf } from '../../support/other-checkout.ts'

interface Cost {
  /** Microseconds of CPU for each pair of records, of all threads, with the caller's own share. */
  readonly cpu: number
  /** Milliseconds until an intent is durable: the median. */
  readonly p50: number
}

const ROUNDS = Number(process.env['ROUNDS'] ?? 11)
const PAIRS = Number(process.env['PAIRS'] ?? 20_000)
const TREES = (process.env['TREES'] ?? join(import.meta.dirname, '../../..')).split(',')
/** Durability and callers. A pair that is synced takes a hundred times as long. */
const CASES = [
  { durability: 'system', callers: 16, pairs: PAIRS },
  { durability: 'system', callers: 64, pairs: PAIRS },
  { durability: 'disk', callers: 1, pairs: PAIRS / 40 },
  { durability: 'disk', callers: 16, pairs: PAIRS / 10 },
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
async function makePairs(
  trail: ReturnType<typeof Trail.openTrail>,
  { callers, pairs }: Case,
): Promise<number[]> {
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

/** In a process of its own, so that all its CPU time belongs to the records. */
async function measure(tree: string, asked: Case): Promise<Cost> {
  const { openTrail } = (await moduleOf(tree, 'state/audit/write/trail.ts')) as typeof Trail
  const folder = mkdtempSync(join(tmpdir(), 'postern-audit-cost-'))
  const clock = { now: () => Date.now(), monotonic: () => performance.now() }
  const recorder = { note: (...told: unknown[]) => console.error(...told) }
  const plan = { folder, durability: asked.durability, timeout: 20_000 }
  const trail = openTrail(plan, { clock, recorder, bodyKey: 'k'.repeat(43) })
  await makePairs(trail, { ...asked, pairs: asked.pairs / 4 })
  const before = process.cpuUsage()
  const times = await makePairs(trail, asked)
  const { user, system } = process.cpuUsage(before)
  await trail.close()
  rmSync(folder, { recursive: true })
  return { cpu: (user + system) / asked.pairs, p50: median(times) }
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
    console.log(`${asked.durability}, ${asked.callers} callers: ${cpu} µs CPU a pair, p50 ${p50} ms  ${tree}`)
  }
}

const [tree, asked] = process.argv.slice(2)
if (tree !== undefined && asked !== undefined)
  console.log(JSON.stringify(await measure(tree, JSON.parse(asked) as Case)))
else for (const one of CASES) compare(one)
