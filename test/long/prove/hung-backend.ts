/**
 * `node test/long/prove/hung-backend.ts [--code FOLDER] [--seconds 15] [--places 100]`: what share of a client's calls to a
 * backend that is well is refused while another backend of the same service never answers (T5.4). Twice as many callers
 * as the client has places ask the hung one, each again as soon as it has an answer; ten ask the other one.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request, type IncomingMessage } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type * as app from '../../../src/serve/start/service.ts'
import type * as clocks from '../../../src/base/kernel/clock.ts'
import { moduleOf, readerOf } from '../../support/other-checkout.ts'

const OWN = fileURLToPath(new URL('../../..', import.meta.url))
const { values: options } = parseArgs({
  options: {
    code: { type: 'string', default: OWN },
    seconds: { type: 'string', default: '15' },
    places: { type: 'string', default: '100' },
  },
})
const PLACES = Number(options.places)

const from = (file: string): Promise<unknown> => moduleOf(options.code, file)
const { startPostern } = (await from('serve/start/service.ts')) as typeof app
const readConfiguration = await readerOf(options.code)
const { systemClock } = (await from('base/kernel/clock.ts')) as typeof clocks

interface Answered {
  readonly status: number
  readonly text: string
}

async function send(
  agent: Agent,
  port: number,
  path: string,
  headers: object,
  body?: string,
): Promise<Answered> {
  const sent = request({
    agent,
    port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...headers },
  })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }
}

const hung = createServer((socket) => void socket.on('error', () => undefined).resume())
await once(hung.listen(0, '127.0.0.1'), 'listening')
const data = await mkdtemp(join(tmpdir(), 'postern-prove-'))
const environment = {
  POSTERN_PORT: '0',
  POSTERN_ADMIN_PORT: '0',
  POSTERN_DATA: data,
  UPSTREAM_URL: `http://127.0.0.1:${(hung.address() as AddressInfo).port}`,
}
const read = (file: string) => {
  const { configuration } = readConfiguration(join(resolve(options.code), 'config', file), environment)
  if (configuration === undefined) throw new Error(`${file} cannot be read`)
  return configuration
}
const demo = read('demo.yaml')
const { funds } = read('upstream.yaml').backends
if (funds === undefined) throw new Error('upstream.yaml has no backend')
const service = await startPostern(
  {
    ...demo,
    load: { ...demo.load, clients: { ...demo.load.clients, inFlight: PLACES } },
    backends: { ...demo.backends, hung: funds },
    areas: { ...demo.areas, 'member-data': { backend: 'hung' } },
  },
  { clock: systemClock, environment, logDestination: { write: () => undefined } },
)
const { port } = service.pool
const agent = new Agent({ keepAlive: true })
const issued = await send(
  agent,
  port,
  '/connect/token',
  {
    Authorization: `Basic ${Buffer.from('acme-books:acme-books-secret').toString('base64')}`,
    'Content-Type': 'application/x-www-form-urlencoded',
  },
  'grant_type=password&username=alice&password=alice-password&scope=fund.read business.fund.list target:b/ACME',
)
const { access_token: token } = JSON.parse(issued.text) as { readonly access_token: string }
const headers = { Authorization: `Bearer ${token}` }
const until = performance.now() + Number(options.seconds) * 1000

async function ask(path: string, rest: number): Promise<Record<string, number>> {
  const answers: Record<string, number> = {}
  while (performance.now() < until) {
    const { status } = await send(agent, port, path, headers)
    answers[status] = (answers[status] ?? 0) + 1
    await pause(rest)
  }
  return answers
}

const sum = (all: readonly Record<string, number>[]): Record<string, number> => {
  const total: Record<string, number> = {}
  for (const each of all)
    for (const [status, count] of Object.entries(each)) total[status] = (total[status] ?? 0) + count
  return total
}

const ofHung = Array.from({ length: 2 * PLACES }, () =>
  ask('/api/1.0/f/ACME/SUPER1/member-data/member-list', 100),
)
await pause(500)
const ofWell = await Promise.all(
  Array.from({ length: 10 }, () => ask('/api/1.0/b/ACME/fund-data/fund-list', 20)),
)
const well = sum(ofWell)
const count = Object.values(well).reduce((all, each) => all + each, 0)
console.log(
  `of ${count} calls to the backend that is well ${(((well[429] ?? 0) / count) * 100).toFixed(1)} % were 429: ${JSON.stringify(well)}`,
)
console.log(`calls to the hung one: ${JSON.stringify(sum(await Promise.all(ofHung)))}`)
agent.destroy()
hung.close()
await service.close()
await rm(data, { recursive: true, force: true })
process.exit(0)
