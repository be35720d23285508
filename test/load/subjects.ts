import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuSeconds, processTree } from './cpu-time.ts'

/** A gateway under load: where it listens, and what it has used. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  cpu(): number
  readonly pids: () => readonly number[]
  stop(): void
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Where the upstream has 1 KB of JSON: the address of an action of the demo. */
export const PATH = '/api/1.0/b/ACME/fund-data/fund-list'

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'postern-bench-'))

function subject(name: string, child: ChildProcess, url: string, headers: Subject['headers'] = {}): Subject {
  const pids = (): readonly number[] => processTree(child.pid ?? 0)
  return { name, url, headers, pids, cpu: () => cpuSeconds(pids()), stop: () => void child.kill('SIGTERM') }
}

async function untilAnswering(url: string, headers: Subject['headers'] = {}): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const response = await fetch(url, { headers }).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.status === 200) return
    await pause(50)
  }
  throw new Error(`${url} does not answer 200`)
}

/** 1 KB of JSON at every path, from nginx. */
export async function startUpstream(bytes = 1024): Promise<{ url: string; stop: () => void }> {
  const folder = await newFolder()
  const port = await freePort()
  const payload = JSON.stringify({ Rows: [], Padding: 'x'.repeat(bytes - 26) })
  await writeFile(join(folder, 'payload.json'), payload)
  const server = `server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; client_max_body_size 0; location / { root ${folder}; default_type application/json; error_page 405 =200 @taken; try_files /payload.json =404; } location @taken { return 200 '{}'; } }`
  const child = await startNginx(folder, server)
  const url = `http://127.0.0.1:${port}`
  await untilAnswering(url)
  return { url, stop: () => void child.kill('SIGTERM') }
}

async function startNginx(folder: string, servers: string): Promise<ChildProcess> {
  const config = join(folder, 'nginx.conf')
  await writeFile(
    config,
    `daemon off; pid ${folder}/nginx.pid; error_log /dev/null; worker_processes 1; master_process off;
events { worker_connections 4096; }
http { access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
open_file_cache max=10; ${servers} }`,
  )
  return spawn('nginx', ['-c', config, '-p', folder], { stdio: 'ignore' })
}

export async function startNginxProxy(upstream: string): Promise<Subject> {
  const folder = await newFolder()
  const port = await freePort()
  const child = await startNginx(
    folder,
    `upstream data { server ${upstream.slice(7)}; keepalive 64; }
server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; location / { proxy_pass http://data; proxy_http_version 1.1; proxy_set_header Connection ""; } }`,
  )
  await untilAnswering(`http://127.0.0.1:${port}${PATH}`)
  return subject('nginx plain proxy_pass', child, `http://127.0.0.1:${port}${PATH}`)
}

export async function startHaproxy(upstream: string, publicKey: string, token: string): Promise<Subject> {
  const folder = await newFolder()
  const port = await freePort()
  await writeFile(join(folder, 'key.pem'), publicKey)
  const config = join(folder, 'haproxy.cfg')
  await writeFile(
    config,
    `global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend api
  bind 127.0.0.1:${port}
  http-request set-var(txn.bearer) http_auth_bearer
  http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
  http-request deny unless { var(txn.alg) -m str ES256 }
  http-request deny unless { var(txn.bearer),jwt_verify(txn.alg,"${folder}/key.pem") -m int 1 }
  default_backend data
backend data
  server one ${upstream.slice(7)}
`,
  )
  const child = spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' })
  const headers = { Authorization: `Bearer ${token}` }
  await untilAnswering(`http://127.0.0.1:${port}${PATH}`, headers)
  return subject('HAProxy + jwt_verify ES256', child, `http://127.0.0.1:${port}${PATH}`, headers)
}

export async function startNodeProxy(
  kind: string,
  name: string,
  upstream: string,
  more: { readonly publicKey?: string; readonly token?: string } = {},
): Promise<Subject> {
  const child = spawn(process.execPath, [join(ROOT, 'test/load/proxies.ts'), kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, UPSTREAM: upstream, PUBLIC_KEY: more.publicKey ?? '' },
  })
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text) => resolve(String(text).trim())),
  )
  const headers = more.token === undefined ? {} : { Authorization: `Bearer ${more.token}` }
  await untilAnswering(`http://127.0.0.1:${port}${PATH}`, headers)
  return subject(name, child, `http://127.0.0.1:${port}${PATH}`, headers)
}

/** A Postern under load, and where it issues tokens. */
export interface PosternSubject extends Subject {
  readonly origin: string
  readonly admin: string
  /** The folder of its keys. */
  readonly keys: string
}

/** The product as it is run, in a process of its own, its log going to a file. `yaml` extends upstream.yaml. */
export async function startPosternProcess(
  upstream: string,
  yaml = '',
  { node = [] as readonly string[], file = 'upstream.yaml', root = ROOT } = {},
): Promise<PosternSubject> {
  const folder = await newFolder()
  const [port, admin] = [await freePort(), await freePort()]
  const config = join(folder, 'postern.yaml')
  await writeFile(config, `extends: ${join(root, 'config', file)}\n${yaml}`)
  const child = spawn(
    'sh',
    ['-c', `exec "${process.execPath}" ${node.join(' ')} src/main.ts serve ${config} > ${folder}/log`],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...process.env,
        UPSTREAM_URL: upstream,
        POSTERN_PORT: String(port),
        POSTERN_ADMIN_PORT: String(admin),
        POSTERN_DATA: join(folder, 'data'),
      },
    },
  )
  const origin = `http://127.0.0.1:${port}`
  await untilAnswering(`${origin}/.well-known/jwks.json`)
  const { access_token } = await passwordToken(origin)
  const headers = { Authorization: `Bearer ${access_token}` }
  await untilAnswering(`${origin}${PATH}`, headers)
  return {
    ...subject('Postern, every check, log and metric on', child, `${origin}${PATH}`, headers),
    origin,
    admin: `http://127.0.0.1:${admin}`,
    keys: join(folder, 'data', 'keys'),
  }
}

/** alice's token at ACME. */
export async function passwordToken(origin: string): Promise<{ readonly access_token: string }> {
  const response = await fetch(`${origin}/connect/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from('acme-books:acme-books-secret').toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'password',
      username: 'alice',
      password: 'alice-password',
      scope: 'fund.maintain business.fund.list target:b/ACME',
    }),
  })
  return (await response.json()) as { access_token: string }
}
