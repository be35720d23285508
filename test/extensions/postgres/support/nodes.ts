/** Several nodes of one configuration on one Postgres, each in a process of its own, and with a way of its own to Postgres. */
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../support/free-port.ts'
import { LosingProxy } from './losing-proxy.ts'
import { drawSchema, type PostgresCluster } from '../../../support/postgres.ts'
import { sealKey } from '../../../support/seal-key.ts'
import { DEMO, spawnPostern, type SpawnedPostern } from '../../../support/spawn-postern.ts'

export interface NodesOptions {
  readonly count?: number
  /** Settings of all nodes, as YAML, besides those of the store. */
  readonly settings?: string
  /** Further members of `server`, as YAML in braces has them: `timeouts: { lameDuck: 2s }`. */
  readonly server?: string
  /** Further members of `store`, one line each. */
  readonly store?: string
  /** Where their data are; a service that is started with them if not given. */
  readonly upstream?: string
  /** Where clients reach them; the first node if not given. */
  readonly publicUrl?: string
  /** Milliseconds by which the wall clock of each node is ahead. With it, clocks can jump later. */
  readonly ahead?: readonly number[]
  /** Where the Postern of all nodes lies; this repository if not given. */
  readonly root?: string
}

export interface StartedNode extends SpawnedPostern {
  readonly proxy: LosingProxy
  /** Starts it anew on its ports, when it has ended: the Postern that lies in `root`, else the one before. */
  restart(root?: string): Promise<StartedNode>
  /** Its wall clock is so many milliseconds ahead from now on, and a blink later in all its processes. */
  jump(ms: number): void
}

export interface Nodes {
  readonly nodes: readonly StartedNode[]
  /** In which their tables are. */
  readonly schema: string
  readonly adminToken: string
  /** Posts an order to a node's admin API; answers the status. */
  order(node: SpawnedPostern, path: string, body?: object): Promise<number>
  close(): Promise<void>
}

const ADMIN_TOKEN = 'a-token-of-the-tests-0123456789'

/** Answers every call with an empty list of funds. */
async function startFunds(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume()
    response.setHeader('Content-Type', 'application/json').end('{"FundSummaries":[],"TotalCount":0}')
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** The demo with its data behind a service, its state in Postgres, and passwords that are quick to check. */
const configuration = (
  funds: string,
  schema: string,
  publicUrl: string,
  { settings = '', server = '', store = '' }: NodesOptions,
) => `
extends: ${DEMO}
server: { baseUrl: ${publicUrl}, authUrl: ${publicUrl}, ${server} }
admin: { token: { env: NODES_ADMIN_TOKEN } }
log: { calls: none }
store:
  kind: postgres
  url: { env: NODES_STORE_URL }
  schema: ${schema}
  seal: [{ id: test, key: { env: NODES_SEAL } }]
  ${store}
backends:
  sample:
  funds: { kind: http, target: '${funds}' }
areas:
  fund-data: { backend: funds }
  member-data: { backend: funds }
${settings}`

/** A program that node runs first: the wall clock is ahead by the number in a file. */
const clockAhead = (file: string): readonly string[] => [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { readFileSync } from 'node:fs'
    const RealDate = Date
    let ahead = 0
    const read = () => { ahead = Number(readFileSync(${JSON.stringify(file)}, 'utf8')) || 0 }
    read()
    setInterval(read, 20).unref()
    globalThis.Date = class extends RealDate {
      constructor(...given) { super(...(given.length === 0 ? [RealDate.now() + ahead] : given)) }
      static now() { return RealDate.now() + ahead }
    }`)}`,
]

interface StartParts {
  readonly config: string
  readonly environment: Readonly<Record<string, string>>
  readonly proxy: LosingProxy
  readonly root: string | undefined
  /** With how far its clock is ahead; undefined: its clock is right. */
  readonly clock: string | undefined
}

async function startNode({ config, environment, proxy, ...parts }: StartParts): Promise<StartedNode> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const ports = { POSTERN_PORT: String(port), POSTERN_ADMIN_PORT: String(adminPort) }
  const own = { ...environment, ...ports, NODES_STORE_URL: proxy.url() }
  const node = parts.clock === undefined ? [] : clockAhead(parts.clock)
  const start = async (root = parts.root): Promise<StartedNode> => {
    const spawned = await spawnPostern({
      config,
      node,
      environment: own,
      ...(root !== undefined && { root }),
    })
    const url = `http://127.0.0.1:${port}`
    const adminUrl = `http://127.0.0.1:${adminPort}`
    return {
      ...{ ...spawned, port, baseUrl: url, authUrl: url, adminUrl, proxy },
      restart: (next = root) => start(next),
      jump: (ms) => writeFileSync(parts.clock!, String(ms)),
    }
  }
  return start()
}

/** The caller closes them. The cluster stays. */
export async function startNodes(cluster: PostgresCluster, options: NodesOptions = {}): Promise<Nodes> {
  const { count = 2, ahead, publicUrl = 'http://127.0.0.1:8080', root } = options
  const folder = await mkdtemp(join(tmpdir(), 'postern-nodes-'))
  const { server, url: funds } = await startFunds()
  const config = join(folder, 'postern.yaml')
  const schema = drawSchema()
  await writeFile(config, configuration(options.upstream ?? funds, schema, publicUrl, options))
  const environment = { NODES_ADMIN_TOKEN: ADMIN_TOKEN, NODES_SEAL: sealKey('test').key }
  const proxies = await Promise.all(Array.from({ length: count }, () => LosingProxy.open(cluster.port)))
  const nodes = await Promise.all(
    proxies.map((proxy, at) => {
      const clock = ahead && join(folder, `clock-${at}`)
      if (clock !== undefined) writeFileSync(clock, String(ahead?.[at] ?? 0))
      return startNode({ config, environment, proxy, root, clock })
    }),
  )
  return {
    nodes,
    schema,
    adminToken: ADMIN_TOKEN,
    order: async ({ adminUrl }, path, body = {}) => {
      const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' }
      const answer = await fetch(`${adminUrl}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      await answer.arrayBuffer()
      return answer.status
    },
    close: async () => {
      for (const { proxy } of nodes) proxy.mend()
      await Promise.all(nodes.map((node) => node.stop()))
      await Promise.all(proxies.map((proxy) => proxy.close()))
      server.closeAllConnections()
      server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
