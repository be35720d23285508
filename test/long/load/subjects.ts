import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../support/free-port.ts'
import { cpuSeconds, processTree } from './cpu-time.ts'

/** A gateway under load: where it listens, and what it has used. */
export interface Subject {
  readonly name: string
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  cpu(): number
  readonly pids: () => readonly number[]
  stop(): void
}

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Where the upstream has 1 KB of JSON: the address of an action of the demo. */
export const PATH = '/api/1.0/b/ACME/fund-data/fund-list'
/** Paths of rows of funds, and of bytes that are passed on as they are. The first one takes a POST of such rows. */
export const PATH_1_KB = '/api/1.0/b/ACME/fund-data/funds-1-kb'
export const PATH_100_KB = '/api/1.0/b/ACME/fund-data/funds-100-kb'
export const PATH_1_MB = '/api/1.0/b/ACME/fund-data/funds-1-mb'
export const PATH_FILE = '/api/1.0/b/ACME/bulk-data/file'

/** The schema of the members of a row of `rowsOfFunds`. */
const ROW = `
          Code: { type: string }, Name: { type: string }, Currency: { type: string }, Opened: { type: string },
          Price: { type: number }, Units: { type: integer }, Open: { type: boolean }, Manager: { type: [string, 'null'] },
          Tags: { type: array, items: { type: string } },
          Address: { type: object, properties: { Locality: { type: string }, Country: { type: string } } }`
const ROWS = `type: array, items: { type: object, additionalProperties: false, properties: { ${ROW} } }`
const SCHEMA = `{ type: object, additionalProperties: false, properties: { FundSummaries: { ${ROWS} } } }`

/** The actions of these addresses, for a configuration file. */
export const ACTIONS_YAML = `areas:
  bulk-data: { backend: funds }
actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] } } } }
  - level: business
    area: fund-data
    action: funds-1-kb
    methods:
      GET: { scopes: { any: [fund.read] } }
      POST: { scopes: { any: [fund.read] }, audit: none, auditReason: a benchmark, body: { schema: ${SCHEMA} } }
  - { level: business, area: fund-data, action: funds-100-kb, methods: { GET: { scopes: { any: [fund.read] } } } }
  - { level: business, area: fund-data, action: funds-1-mb, methods: { GET: { scopes: { any: [fund.read] } } } }
  - level: business
    area: bulk-data
    action: file
    methods:
      GET: { scopes: { any: [fund.read] }, produces: [application/octet-stream, application/json] }
      POST: { scopes: { any: [fund.read] }, consumes: [application/octet-stream], produces: [application/json] }
`

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
  origin: string,
  headers: Subject['headers'] = {},
): Subject {
  const pids = (): readonly number[] => processTree(child.pid ?? 0)
  return {
    name,
    origin,
    headers,
    pids,
    cpu: () => cpuSeconds(pids()),
    stop: () => void child.kill('SIGTERM'),
  }
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

/** JSON as a service makes it of its rows, of about so many bytes. */
export function rowsOfFunds(bytes: number): string {
  const row = (at: number): object => ({
    Code: `FUND${at}`,
    Name: `Fund number ${at}, "growth & income" – Zürich`,
    Currency: 'EUR',
    Opened: '2024-07-01',
    Price: at * 1.25,
    Units: 1000 + at,
    Open: at % 3 > 0,
    Manager: null,
    Tags: ['pension', 'monthly'],
    Address: { Locality: 'Zürich', Country: 'CH' },
  })
  const each = JSON.stringify(row(100)).length + 1
  return JSON.stringify({
    FundSummaries: Array.from({ length: Math.round(bytes / each) }, (_, at) => row(at)),
  })
}

/** What nginx has at the end of a path; 1 KB of JSON at every other one. */
const FILES = {
  'funds-1-kb': rowsOfFunds(1024),
  'funds-100-kb': rowsOfFunds(100 * 1024),
  'funds-1-mb': rowsOfFunds(1024 ** 2),
  file: 'x'.repeat(10 * 1024 ** 2),
}

const FUND =
  '<f:Fund><f:Code>SUPER1</f:Code><f:Name>Super &amp; Co</f:Name><f:Status>active</f:Status></f:Fund>'
/** A SOAP service that has one answer, of 1 KB. */
const SOAP = `location /soap { default_type text/xml; return 200 '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><f:ListFundsResponse xmlns:f="http://funds.example/2024">${FUND.repeat(8)}</f:ListFundsResponse></s:Body></s:Envelope>'; }`

export async function startUpstream(): Promise<{ url: string; stop: () => void }> {
  const folder = await newFolder()
  const port = await freePort()
  await writeFile(join(folder, 'payload'), JSON.stringify({ Rows: [], Padding: 'x'.repeat(1024 - 26) }))
  for (const [name, content] of Object.entries(FILES)) await writeFile(join(folder, name), content)
  const kept = `root ${folder}; default_type application/json; error_page 405 =200 @taken;`
  const locations = Object.keys(FILES).map(
    (name) =>
      `location ~ /${name}$ { ${name === 'file' ? 'default_type application/octet-stream; ' : ''}try_files /${name} =404; }`,
  )
  const server = `server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; client_max_body_size 0; ${kept}
${locations.join('\n')} ${SOAP} location / { try_files /payload =404; } location @taken { default_type application/json; return 200 '{}'; } }`
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
  const origin = `http://127.0.0.1:${port}`
  await untilAnswering(origin + PATH)
  return subject(NGINX, child, origin)
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
  const origin = `http://127.0.0.1:${port}`
  await untilAnswering(origin + PATH, headers)
  return subject(HAPROXY, child, origin, headers)
}

/** fast-jwt warns of keys of its cache that are not unique; the token itself is. */
const QUIET = '--disable-warning=FAST_JWT_CACHE_KEY_BUILDER_SECURITY_RISK'

/** The kinds of proxies.ts, as reports name them. */
export const NODE_PROXIES = {
  bare: 'lean node:http + undici',
  'bare-jose': 'the same, verifying by jose',
  'reply-from': '@fastify/reply-from',
  'http-proxy-jwt': '@fastify/http-proxy + @fastify/jwt',
} as const
export const NGINX = 'nginx plain proxy_pass'
export const HAPROXY = 'HAProxy + jwt_verify ES256'

export async function startNodeProxy(
  kind: keyof typeof NODE_PROXIES,
  { upstream, publicKey, headers }: GatewayFacts,
): Promise<Subject> {
  const child = owned(
    spawn(process.execPath, [QUIET, join(ROOT, 'test/long/load/proxies.ts'), kind], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, UPSTREAM: upstream, PUBLIC_KEY: publicKey },
    }),
  )
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text) => resolve(String(text).trim())),
  )
  const origin = `http://127.0.0.1:${port}`
  await untilAnswering(origin + PATH, headers)
  return subject(NODE_PROXIES[kind], child, origin, headers)
}
