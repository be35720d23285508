import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../support/free-port.ts'
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

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Where the upstream has 1 KB of JSON: the address of an action of the demo. */
export const PATH = '/api/1.0/b/ACME/fund-data/fund-list'

export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'postern-bench-'))

/** Started here: they end with the benchmark, also where it fails. */
const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) child.kill('SIGTERM')
})

/** Ends a process when the benchmark ends. */
export function owned<T extends ChildProcess>(child: T): T {
  children.add(child)
  return child
}

export function subject(
  name: string,
  child: ChildProcess,
  url: string,
  headers: Subject['headers'] = {},
): Subject {
  const pids = (): readonly number[] => processTree(child.pid ?? 0)
  return { name, url, headers, pids, cpu: () => cpuSeconds(pids()), stop: () => void child.kill('SIGTERM') }
}

export async function untilAnswering(url: string, headers: Subject['headers'] = {}): Promise<void> {
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
  const server = `server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; client_max_body_size 0; location / { root ${folder}; default_type application/json; error_page 405 =200 @taken; try_files /payload.json =404; } location @taken { default_type application/json; return 200 '{}'; } }`
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
  return owned(spawn('nginx', ['-c', config, '-p', folder], { stdio: 'ignore' }))
}

/**
 * No check, no log, one worker. It keeps more connections to the upstream than calls come at a time, and never ends one
 * for its age (by default it does after 1,000 requests).
 */
export async function startNginxProxy(upstream: string): Promise<Subject> {
  const folder = await newFolder()
  const port = await freePort()
  const child = await startNginx(
    folder,
    `upstream data { server ${upstream.slice(7)}; keepalive 128; keepalive_requests 1000000000; }
server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; location / { proxy_pass http://data; proxy_http_version 1.1; proxy_set_header Connection ""; } }`,
  )
  await untilAnswering(`http://127.0.0.1:${port}${PATH}`)
  return subject('nginx plain proxy_pass', child, `http://127.0.0.1:${port}${PATH}`)
}

/** What a gateway that checks tokens is told: whom to ask, and Postern's key. `headers` have a token of Postern. */
export interface GatewayFacts {
  readonly upstream: string
  /** PEM. */
  readonly publicKey: string
  readonly headers: Subject['headers']
}

/**
 * One thread, as Postern's one worker has for calls. It keeps no verified tokens: `jwt_verify` verifies the signature in
 * each call, which is most of what it costs. Connections to the upstream are shared by all clients, and nothing is logged.
 */
export async function startHaproxy({ upstream, publicKey, headers }: GatewayFacts): Promise<Subject> {
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
  http-reuse always
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend api
  bind 127.0.0.1:${port}
  http-request set-var(txn.bearer) http_auth_bearer
  http-request deny unless { var(txn.bearer),jwt_header_query('$.alg') -m str ES256 }
  http-request deny unless { var(txn.bearer),jwt_verify(ES256,"${folder}/key.pem") -m int 1 }
  default_backend data
backend data
  server one ${upstream.slice(7)}
`,
  )
  const child = owned(spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' }))
  const url = `http://127.0.0.1:${port}${PATH}`
  await untilAnswering(url, headers)
  return subject('HAProxy + jwt_verify ES256', child, url, headers)
}

/** fast-jwt warns of keys of its cache that are not unique; the token itself is. */
const QUIET = '--disable-warning=FAST_JWT_CACHE_KEY_BUILDER_SECURITY_RISK'

/** @param kind of proxies.ts */
export async function startNodeProxy(
  kind: string,
  name: string,
  { upstream, publicKey, headers }: GatewayFacts,
): Promise<Subject> {
  const child = owned(
    spawn(process.execPath, [QUIET, join(ROOT, 'test/load/proxies.ts'), kind], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, UPSTREAM: upstream, PUBLIC_KEY: publicKey },
    }),
  )
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text) => resolve(String(text).trim())),
  )
  const url = `http://127.0.0.1:${port}${PATH}`
  await untilAnswering(url, headers)
  return subject(name, child, url, headers)
}
