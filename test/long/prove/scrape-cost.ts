/**
 * `node test/long/prove/scrape-cost.ts [--scrapes 200]`: how long a scrape takes with 1,000 actions in 40 areas, 200 clients,
 * 10 backends and what 4 workers have counted, all of them with traffic. The event loop does nothing else meanwhile.
 * Reports the first one, the median and the slowest in milliseconds, and the size; each of them should be below 50 ms.
 */
import { parseArgs } from 'node:util'
import { FAULTS } from '../../../src/base/kernel/fault-table.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { ClientTallies } from '../../../src/operate/watch/metrics/counts.ts'
import { Exposition } from '../../../src/operate/watch/metrics/exposition.ts'
import { reading } from '../../../src/operate/watch/metrics/gauges.ts'
import { FAMILIES } from '../../../src/operate/watch/metrics/families.ts'
import { compileMetrics } from '../../../src/operate/watch/metrics/metrics.ts'
import { fakeDecision, fakeExchange } from '../../support/events.ts'

const { values: options } = parseArgs({ options: { scrapes: { type: 'string', default: '200' } } })
const MOST_MS = 50
const WORKERS = 4

const actions = Array.from({ length: 1000 }, (_, at) => ({
  area: `area-${at % 40}`,
  action: `action-${at}/{id:uuid}`,
}))
const backends = Array.from({ length: 10 }, (_, at) => `backend-${at}`)
const reasons = Object.keys(FAULTS)
const clients = Array.from({ length: 250 }, (_, at) => `client-${at}`)

/** How calls end: those of each action, by method. */
const ENDS = [
  ['GET', 200, undefined],
  ['POST', 200, undefined],
  ['GET', 404, new Fault('unknown_place')],
  ['GET', 401, new Fault('insufficient_scope')],
  ['GET', 500, new Fault('upstream_broken')],
] as const

/** A worker that has had calls of every action, from every client, to every backend. */
function startWorker() {
  const metrics = compileMetrics({ actions, backends, reasons, grants: ['password', 'refresh_token'] })
  const tallies = new ClientTallies()
  const exchanges = new Map(['GET', 'POST'].map((method) => [method, fakeExchange({ method })]))
  const count = () => {
    for (const [slot] of actions.entries())
      for (const [method, status, fault] of ENDS) {
        const client = clients[slot % clients.length] ?? ''
        const principal = { client, tally: tallies.of(client) } as unknown as Principal
        const exchange = exchanges.get(method)
        metrics.recorder.decision(
          fakeDecision({
            slot,
            status,
            fault,
            principal,
            totalMs: slot % 100,
            ...(exchange && { exchange }),
          }),
        )
      }
    for (const backend of backends)
      for (const outcome of ['answered', 'upstream_timeout', 'upstream_broken'])
        metrics.recorder.backend({ backend, outcome, ms: 10 })
  }
  return { metrics, tallies, count }
}

const gauges = Array.from({ length: WORKERS }, () =>
  backends.flatMap((backend) => [
    reading(FAMILIES.backendCallsInFlight, 3, backend),
    reading(FAMILIES.upstreamQueue, 0, backend),
    ...['active', 'idle'].map((state) => reading(FAMILIES.upstreamConnections, 5, backend, state)),
    ...['healthy', 'ejected'].map((state) => reading(FAMILIES.upstreamTargets, 1, backend, state)),
  ]),
).flat()

const exposition = new Exposition({ version: '1', node: process.version })
exposition.limitClients(200, [])
const workers = Array.from({ length: WORKERS }, startWorker)

async function scrape(): Promise<{ readonly ms: number; readonly text: string }> {
  for (const { metrics, tallies, count } of workers) {
    count()
    exposition.absorb(structuredClone(metrics.take()))
    exposition.absorb(structuredClone(tallies.take()))
  }
  const before = performance.now()
  const text = await exposition.text(gauges)
  return { ms: performance.now() - before, text }
}

const times: number[] = []
let text = ''
for (let at = 0; at < Number(options.scrapes); at++) {
  const { ms, text: printed } = await scrape()
  times.push(ms)
  text = printed
}
const sorted = times.toSorted((one, other) => one - other)
const figures = {
  series: text.split('\n').filter((line) => line.startsWith('postern_')).length,
  bytes: text.length,
  first: times[0]?.toFixed(1),
  median: sorted[sorted.length >> 1]?.toFixed(1),
  slowest: sorted.at(-1)?.toFixed(1),
}
console.table([figures])
process.exitCode = (sorted[sorted.length >> 1] ?? Infinity) > MOST_MS ? 1 : 0
