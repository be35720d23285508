/**
 * How many calls four nodes together let in of clients that call 10 and 20 times as often as they may, for 10 seconds: one
 * client, and 1,000 of them.
 *
 *     npm run prove nodes-rates
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { inParallel } from '../load/exchanges.ts'
import { startCluster } from '../../extensions/postgres/support/node-troubles.ts'
import { startNodes } from '../../extensions/postgres/support/nodes.ts'
import { issueToken } from '../../support/tokens.ts'

const NODES = 4
const SECONDS = 10
const PATH = '/api/1.0/b/ACME/fund-data/fund-list'
/** Milliseconds between two moments in which calls are sent. */
const STEP = 5

interface Limit {
  readonly clients: number
  /** Calls in a second, of each client. */
  readonly requests: number
  readonly burst: number
}

const ONE: Limit = { clients: 1, requests: 80, burst: 80 }
const MANY: Limit = { clients: 1000, requests: 0.1, burst: 6 }

const idOf = (at: number): string => `client-${at}`

/** Clients whose secret is the demo's, for whom alice may sign in. */
function settings({ clients, requests, burst }: Limit): string {
  const ids = Array.from({ length: clients }, (_, at) => idOf(at))
  const each = ids.map(
    (id) =>
      `    ${id}: { kind: customer, name: ${id}, secrets: ['${SECRET}'], grants: [password], ${AGREED} }`,
  )
  return `load:
  shedding: { delay: 0s }
  share: 0.1
  clients: { inFlight: 10000, rate: { requests: ${requests * 60}, per: 60s, burst: ${burst} } }
directory:
  clients:
${each.join('\n')}
  users:
    alice: { customers: [${ids.join(', ')}] }
`
}
const SECRET = 'sha256:LrS2csIIenKerBXhR_QzSOAnV-FAjLrko9uDiwaZEYQ' // acme-books-secret
const AGREED = 'agreement: 2026-01-15, businesses: [ACME], scopes: [fund.read]'

/** Sends so many calls a second, spread over nodes and clients by chance, and tells how many were let in. */
async function flood(urls: readonly string[], tokens: readonly string[], perSecond: number) {
  const pools = urls.map((url) => new Pool(url, { connections: 32 }))
  const statuses = new Map<number, number>()
  const call = async (): Promise<void> => {
    const pool = pools[Math.floor(Math.random() * pools.length)]
    const token = tokens[Math.floor(Math.random() * tokens.length)] ?? ''
    const answer = await pool?.request({
      method: 'GET',
      path: PATH,
      headers: { authorization: `Bearer ${token}` },
    })
    await answer?.body.dump()
    const status = answer?.statusCode ?? 0
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  const calls: Promise<void>[] = []
  const began = performance.now()
  let elapsed = 0
  while ((elapsed = (performance.now() - began) / 1000) < SECONDS) {
    while (calls.length < elapsed * perSecond) calls.push(call())
    await pause(STEP)
  }
  await Promise.all(calls)
  const seconds = (performance.now() - began) / 1000
  await Promise.all(pools.map((pool) => pool.close()))
  return { statuses: Object.fromEntries(statuses), seconds }
}

async function measure(limit: Limit, times: number): Promise<void> {
  const cluster = await startCluster()
  const started = await startNodes(cluster, { count: NODES, settings: settings(limit) })
  try {
    const [first] = started.nodes
    if (first === undefined) throw new Error('no node')
    const tokens: string[] = []
    const clients = Array.from({ length: limit.clients }, (_, at) => idOf(at))
    await inParallel(clients, 8, async (client) => {
      const scope = 'fund.read target:b/ACME'
      tokens.push((await issueToken(first, { client, secret: 'acme-books-secret', scope })).access_token)
    })
    const perSecond = limit.clients * limit.requests * times
    const urls = started.nodes.map(({ baseUrl }) => baseUrl)
    const { statuses, seconds } = await flood(urls, tokens, perSecond)
    const may = limit.clients * (limit.burst + limit.requests * seconds)
    const over = ((statuses['200'] ?? 0) / may - 1) * 100
    console.log(
      `${limit.clients} clients at ${times} times their rate: ${statuses['200'] ?? 0} let in of ${may.toFixed(0)} ` +
        `allowed (${over >= 0 ? '+' : ''}${over.toFixed(1)} %)`,
      statuses,
    )
  } finally {
    await started.close()
    await cluster.remove()
  }
}

for (const limit of [ONE, MANY]) for (const times of [10, 20]) await measure(limit, times)
process.exit(0)
