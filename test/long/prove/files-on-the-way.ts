/**
 * `node test/long/prove/files-on-the-way.ts [--code FOLDER] [--list]`: how many files of `src` a forwarded GET with a known
 * token enters. A file counts if one of its functions is called during each of the counted calls, so that a timer which
 * fires during one of them does not count.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, createServer, request, type IncomingMessage } from 'node:http'
import { Session, type Profiler } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type * as app from '../../../src/serve/start/service.ts'
import type * as clocks from '../../../src/base/kernel/clock.ts'
import { moduleOf, readerOf } from '../../support/other-checkout.ts'

const { values: options } = parseArgs({
  options: {
    code: { type: 'string', default: fileURLToPath(new URL('../../..', import.meta.url)) },
    list: { type: 'boolean', default: false },
  },
})
const WARM_UP = 50
const COUNTED = 10

const source = pathToFileURL(join(resolve(options.code), 'src/')).href
const from = (file: string): Promise<unknown> => moduleOf(options.code, file)
const { startPostern } = (await from('serve/start/service.ts')) as typeof app
const readConfiguration = await readerOf(options.code)
const { systemClock } = (await from('base/kernel/clock.ts')) as typeof clocks

const upstream = createServer((_request, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"Items":[]}')
})
await once(upstream.listen(0, '127.0.0.1'), 'listening')
const data = await mkdtemp(join(tmpdir(), 'postern-prove-'))
const environment = {
  POSTERN_PORT: '0',
  POSTERN_ADMIN_PORT: '0',
  POSTERN_DATA: data,
  UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
}
const { configuration } = readConfiguration(join(resolve(options.code), 'config/upstream.yaml'), environment)
if (configuration === undefined) throw new Error('config/upstream.yaml cannot be read')
const logDestination = { write: () => undefined }
const service = await startPostern(configuration, { clock: systemClock, environment, logDestination })

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
async function send(path: string, headers: Record<string, string>, body?: string): Promise<string> {
  const method = body === undefined ? 'GET' : 'POST'
  const sent = request({ agent, port: service.pool.port, path, method, headers }).end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  if (response.statusCode !== 200) throw new Error(`${path} was answered ${response.statusCode}: ${text}`)
  return text
}

const issued = await send(
  '/connect/token',
  {
    Authorization: `Basic ${Buffer.from('acme-books:acme-books-secret').toString('base64')}`,
    'Content-Type': 'application/x-www-form-urlencoded',
  },
  'grant_type=password&username=alice&password=alice-password&scope=fund.read business.fund.list target:b/ACME',
)
const { access_token: token } = JSON.parse(issued) as { readonly access_token: string }
const call = () => send('/api/1.0/b/ACME/fund-data/fund-list', { Authorization: `Bearer ${token}` })
for (let count = 0; count < WARM_UP; count++) await call()

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

const isEntered = ({ url, functions }: Profiler.ScriptCoverage): boolean =>
  url.startsWith(source) &&
  functions.some(({ functionName, ranges }) => functionName !== '' && ranges[0]?.count)

let entered: Set<string> | undefined
for (let count = 0; count < COUNTED; count++) {
  await session.post('Profiler.takePreciseCoverage') // begins to count anew
  await call()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const files = new Set(result.filter(isEntered).map(({ url }) => url.slice(source.length)))
  entered = entered?.intersection(files) ?? files
}
session.disconnect()

console.log(`a forwarded GET with a known token enters ${entered?.size ?? 0} files of src`)
if (options.list) for (const file of [...(entered ?? [])].sort()) console.log(`  ${file}`)
agent.destroy()
upstream.close()
await service.close()
await rm(data, { recursive: true, force: true })
process.exit(0)
