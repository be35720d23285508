/**
 * `npm run bench:nodes`: what a data call costs one node, and two nodes that share their rates on one Postgres; and how long
 * calls take while that Postgres is frozen. Rounds are interleaved, medians are told; nothing is asserted, since machines
 * differ. BENCH_ROUNDS and BENCH_SECONDS bound it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { startCluster } from '../../extensions/postgres/support/node-troubles.ts'
import { startNodes, type StartedNode } from '../../extensions/postgres/support/nodes.ts'
import { issueToken } from '../../support/tokens.ts'
import { cpuSeconds, processTree } from './cpu-time.ts'
import { median } from './exchanges.ts'
import { machine } from './machine.ts'
import { PATH, startUpstream } from './subjects.ts'
import { wrk, type WrkResult } from './wrk.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2)
/** Of all nodes together. */
const CONNECTIONS = 16
const WARMING = 6
/** Milliseconds after which a node knows that its Postgres does not answer, or answers again. */
const SETTLING = 3000
/** So that every call takes from a bucket that the nodes share, and none is refused. */
const SETTINGS = `load:
  shedding: { delay: 0s }
  clients: { rate: { requests: 100000000, per: 1s } }
`

interface Sample {
  /** Microseconds of CPU per call. */
  readonly cpu: number
  readonly results: readonly WrkResult[]
}

const usedBy = (nodes: readonly StartedNode[]): number =>
  nodes.reduce((sum, { pid }) => sum + cpuSeconds(processTree(pid)), 0)

/** Loads these nodes at once. */
async function load(loaded: readonly StartedNode[], token: string, seconds = SECONDS): Promise<Sample> {
  const before = usedBy(loaded)
  const results = await Promise.all(
    loaded.map(({ baseUrl }) =>
      wrk({
        url: `${baseUrl}${PATH}`,
        headers: { Authorization: `Bearer ${token}` },
        seconds,
        connections: CONNECTIONS / loaded.length,
      }),
    ),
  )
  const calls = results.reduce((sum, { requests }) => sum + requests, 0)
  return { cpu: ((usedBy(loaded) - before) / calls) * 1e6, results }
}

const medianOf = (samples: readonly Sample[], pick: (result: WrkResult) => number): number =>
  median(samples.flatMap(({ results }) => results.map(pick)))

const failed = (samples: readonly Sample[]): number =>
  samples.flatMap(({ results }) => results).reduce((sum, result) => sum + result.failed, 0)

const cluster = await startCluster()
const upstream = await startUpstream()
const started = await startNodes(cluster, { settings: SETTINGS, upstream: upstream.url })
try {
  console.log(machine())
  console.log(`${CONNECTIONS} connections, medians of ${ROUNDS} rounds of ${SECONDS} s\n`)
  const { nodes } = started
  const [first] = nodes
  if (first === undefined) throw new Error('no node')
  const { access_token: token } = await issueToken(first, { scope: 'fund.read target:b/ACME' })
  for (const node of nodes) await load([node], token, WARMING)
  const one: Sample[] = []
  const two: Sample[] = []
  const frozen: Sample[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    one.push(await load([first], token))
    two.push(await load(nodes, token))
    cluster.freeze()
    await pause(SETTLING)
    frozen.push(await load([first], token))
    cluster.thaw()
    await pause(SETTLING)
  }
  const cpu = (samples: readonly Sample[]): number => median(samples.map((sample) => sample.cpu))
  console.log('| calls to | CPU µs each | p50 ms | p99 ms | failed |')
  console.log('|---|---|---|---|---|')
  for (const [title, samples] of [
    ['one node', one],
    ['two nodes at once', two],
    ['one node, Postgres frozen', frozen],
  ] as const)
    console.log(
      `| ${title} | ${cpu(samples).toFixed(1)} | ${medianOf(samples, ({ p50 }) => p50).toFixed(2)} | ` +
        `${medianOf(samples, ({ p99 }) => p99).toFixed(2)} | ${failed(samples)} |`,
    )
  console.log(`\nTwo nodes serve ${((2 * cpu(one)) / cpu(two)).toFixed(2)} times what one serves (goal 1.9)`)
} finally {
  await started.close()
  upstream.stop()
  await cluster.remove()
}
process.exit(0)
