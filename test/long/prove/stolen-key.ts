/**
 * How long a token that was forged with a stolen signing key is accepted after `keys rotate --compromised`: by a plain
 * call, by introspection, and by a websocket that it opened; with one worker and with two.
 * `node test/long/prove/stolen-key.ts [ROOT]`: of another checkout, if ROOT is given.
 */
import { execFile, spawn } from 'node:child_process'
import { createPrivateKey, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createUpstream, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WebSocket, WebSocketServer } from 'ws'

const ROOT = resolve(process.argv[2] ?? fileURLToPath(new URL('../../..', import.meta.url)))
/** Milliseconds after the verb has ended. */
const GIVE_UP = 15_000
const BASIC = `Basic ${Buffer.from('acme-books:acme-books-secret').toString('base64')}`
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

const upstream = createServer((_request, response) =>
  response.setHeader('Content-Type', 'application/json').end('{"FundSummaries":[],"TotalCount":0}'),
)
const websockets = new WebSocketServer({ server: upstream })
websockets.on('connection', (socket) => socket.on('error', () => undefined))
upstream.listen(0, '127.0.0.1')
await once(upstream, 'listening')
const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

const yaml = (workers: number): string => `extends: ${join(ROOT, 'config/upstream.yaml')}
workers: ${workers}
backends: { funds: { kind: stream, target: '${target}' } }
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods: { GET: { scopes: { any: [fund.read] }, items: {} } }
  - level: business
    area: fund-data
    action: live
    methods: { GET: { scopes: { any: [fund.read] }, websocket: true } }
`

const freePort = async (): Promise<number> => {
  const server = createUpstream().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

interface Service {
  readonly url: string
  readonly data: string
  readonly environment: NodeJS.ProcessEnv
  stop(): Promise<void>
}

async function serve(workers: number): Promise<Service> {
  const data = await mkdtemp(join(tmpdir(), 'postern-stolen-'))
  const file = join(data, 'postern.yaml')
  await writeFile(file, yaml(workers))
  const [port, admin] = [await freePort(), await freePort()]
  const environment = {
    ...process.env,
    POSTERN_CONFIG: file,
    POSTERN_DATA: data,
    POSTERN_PORT: String(port),
    POSTERN_ADMIN_PORT: String(admin),
  }
  const child = spawn(process.execPath, ['src/main.ts', 'serve'], { cwd: ROOT, env: environment })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  while (!output.includes('serving ')) {
    if (child.exitCode !== null) throw new Error(output)
    await new Promise((next) => setTimeout(next, 50))
  }
  return {
    url: `http://127.0.0.1:${port}`,
    data,
    environment,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await rm(data, { recursive: true, force: true })
    },
  }
}

async function login({ url }: Service): Promise<string> {
  const response = await fetch(`${url}/connect/token`, {
    method: 'POST',
    headers: { Authorization: BASIC },
    body: new URLSearchParams({
      grant_type: 'password',
      username: 'alice',
      password: 'alice-password',
      scope: 'openid fund.read target:b/ACME',
    }),
  })
  return ((await response.json()) as { access_token: string }).access_token
}

const part = (token: string, at: number): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[at] ?? '', 'base64url').toString()) as Record<string, unknown>
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

async function forge({ data }: Service, token: string): Promise<string> {
  const jwk = JSON.parse(await readFile(join(data, 'keys/ES256-1.jwk'), 'utf8')) as Record<string, unknown>
  const input = `${encode(part(token, 0))}.${encode({ ...part(token, 1), jti: 'forged', exp: Date.now() / 1000 + 3600 })}`
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  return `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** On a connection of its own, so that every worker has its turn. */
const call = async ({ url }: Service, token: string): Promise<boolean> =>
  (await fetch(url + LIST, { headers: { Authorization: `Bearer ${token}`, Connection: 'close' } })).status ===
  200

async function introspect({ url }: Service, token: string): Promise<boolean> {
  const response = await fetch(`${url}/connect/introspect`, {
    method: 'POST',
    headers: { Authorization: BASIC, Connection: 'close' },
    body: new URLSearchParams({ token }),
  })
  return ((await response.json()) as { active: boolean }).active
}

async function openWebsockets({ url }: Service, token: string, count: number): Promise<WebSocket[]> {
  const opened: WebSocket[] = []
  for (let at = 0; at < count; at++) {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/1.0/b/ACME/fund-data/live`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    socket.on('error', () => undefined)
    await once(socket, 'open')
    opened.push(socket)
  }
  return opened
}

const runVerb = (service: Service): Promise<void> =>
  new Promise((done, failed) => {
    const run = (args: readonly string[]): void => {
      execFile(
        process.execPath,
        ['src/main.ts', 'keys', 'rotate', '--compromised', ...args],
        { cwd: ROOT, env: service.environment },
        (error, _out, told) => {
          if (error === null) done()
          else if (args.length > 0) run([])
          else failed(new Error(told))
        },
      )
    }
    run(['--yes'])
  })

/** When it was accepted for the last time (performance.now()), over many connections; undefined if it never ended. */
async function lastAccepted(
  ask: () => Promise<boolean>,
  verb: Promise<unknown>,
): Promise<number | undefined> {
  let last = performance.now()
  let ended = Number.POSITIVE_INFINITY
  void verb.then(() => (ended = performance.now()))
  let refusals = 0
  while (refusals < 100) {
    const at = performance.now()
    if (at > ended + GIVE_UP) return undefined
    if (await ask()) {
      last = at
      refusals = 0
    } else refusals += 1
  }
  return last
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`

async function measure(workers: number): Promise<void> {
  const service = await serve(workers)
  try {
    const forged = await forge(service, await login(service))
    for (let at = 0; at < 20; at++)
      if (!(await call(service, forged))) throw new Error('the forgery is no good')
    const sockets = await openWebsockets(service, forged, 4)
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close').then(() => performance.now())))
    const began = performance.now()
    const verb = runVerb(service)
    let ended = 0
    const [plain, active, cut] = await Promise.all([
      lastAccepted(() => call(service, forged), verb),
      lastAccepted(() => introspect(service, forged), verb),
      Promise.race([
        closed.then((times) => Math.max(...times)),
        verb.then(() => {
          ended = performance.now()
          return new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), GIVE_UP).unref())
        }),
      ]),
    ])
    const tell = (at: number | undefined): string =>
      at === undefined
        ? `still after ${seconds(performance.now() - ended)}`
        : `until ${seconds(at - began)} after the verb began (it took ${seconds(ended - began)})`
    console.log(`${workers} worker${workers === 1 ? '' : 's'}`)
    console.log(`  plain call     accepted ${tell(plain)}`)
    console.log(`  introspection  active   ${tell(active)}`)
    console.log(`  websocket      open     ${tell(cut)}`)
    for (const socket of sockets) socket.terminate()
  } finally {
    await service.stop()
  }
}

console.log(`code: ${ROOT}`)
for (const workers of [1, 2]) await measure(workers)
websockets.close()
upstream.close()
upstream.closeAllConnections()
