import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bearer, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'
const MEMBER_DETAIL = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`

/** A wire between Postern and the upstream that keeps every byte which goes upstream. */
interface Tap {
  readonly url: string
  /** What went upstream since the last look. */
  taken(): string
  close(): void
}

async function openTap(port: number): Promise<Tap> {
  let text = ''
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    near.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    taken: () => {
      const taken = text
      text = ''
      return taken
    },
    close: () => void server.close(),
  }
}

/** The example upstream as a process of its own, as `npm run upstream` starts it. */
async function startProcess(): Promise<{ child: ChildProcess; port: number }> {
  const program = fileURLToPath(new URL('../support/example-upstream.ts', import.meta.url))
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, UPSTREAM_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, port: Number(/:(\d+)\s*$/.exec(line.toString())?.[1]) }
}

let upstream: ChildProcess
let tap: Tap
let gateway: StartedPostern
let memory: StartedPostern
let token: string
let memoryToken: string
beforeAll(async () => {
  const { child, port } = await startProcess()
  upstream = child
  tap = await openTap(port)
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: tap.url },
  })
  memory = await startPostern({ keeps: 'nothing' })
  const tokens = [gateway, memory].map((each) => issueToken(each, { scope: ALL_AT_ACME }))
  ;[token, memoryToken] = (await Promise.all(tokens)).map((each) => each.access_token) as [string, string]
})
afterAll(async () => {
  await Promise.all([gateway.close(), memory.close()])
  tap.close()
  upstream.kill()
})

const ask = (target: string, { headers, ...more }: Partial<Sent> = {}) =>
  send(gateway, { target, ...more, headers: { ...bearer(token), ...headers } })

describe('C10: config/upstream.yaml is the same world before a real upstream process', () => {
  const READS: readonly (readonly [string, string])[] = [
    [LIST, 'application/json'],
    [LIST, 'application/xml'],
    [DETAIL, 'application/json'],
    [DETAIL, 'application/vnd.postern.action.v1+xml'],
    [MEMBERS, 'application/json'],
    [MEMBER_DETAIL, 'application/json'],
    [MEMBER_DETAIL, 'application/vnd.postern.action.v2+json'],
    [MEMBER_DETAIL, 'application/vnd.postern.action.v2+xml'],
    [MEMBER_DETAIL.replace(MEMBER, '00000000-0000-4000-8000-000000000000'), 'application/json'],
  ]
  it.each(READS)('C10: %s as %s reads as from memory', async (target, accept) => {
    const here = await ask(target, { headers: { Accept: accept } })
    const there = await send(memory, { target, headers: { ...bearer(memoryToken), Accept: accept } })
    expect(here.status).toBe(there.status)
    expect(here.headers['content-type']).toBe(there.headers['content-type'])
    if (here.status === 200) expect(here.body).toBe(there.body)
    else expect(here.body).toContain('API_NOT_FOUND')
  })

  it('C10, C8.2: the upstream receives exactly these bytes', async () => {
    tap.taken()
    const response = await ask(`${LIST}?page=%31&q=a+b`, {
      headers: { Accept: 'application/xml', 'X-Custom': 'kept', 'X-Postern-Subject': 'root' },
    })
    const [head = '', ...rest] = tap.taken().split('\r\n\r\n')
    const [line, ...lines] = head.split('\r\n')
    expect(line).toBe(`GET ${LIST}?page=%31&q=a+b HTTP/1.1`)
    expect(rest).toEqual([''])
    const id = response.headers['x-request-id'] ?? ''
    const { authority, host } = { authority: new URL(tap.url).host, host: new URL(gateway.baseUrl).host }
    const expected: Record<string, unknown> = {
      host: authority,
      connection: 'keep-alive',
      'x-custom': 'kept',
      'accept-encoding': 'identity',
      accept: 'application/json',
      'x-request-id': id,
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/),
      'x-postern-subject': '45733adb-9b07-4d40-ae57-20cf9b802f51',
      'x-postern-client': 'acme-books',
      'x-postern-scope': ALL_AT_ACME,
      'x-postern-business': 'ACME',
      'x-postern-action-version': '1',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': host,
      forwarded: expect.stringContaining('127.0.0.1'),
    }
    const received = lines.map((each) => {
      const colon = each.indexOf(':')
      return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()] as const
    })
    // Each once: an object would hide a second line.
    expect(received.map(([name]) => name).sort()).toEqual(Object.keys(expected).sort())
    expect(Object.fromEntries(received)).toEqual(expected)
  })

  it('C10, C8.6: a POST in XML reaches it as JSON, and changes what a GET returns in JSON', async () => {
    tap.taken()
    const xml = '<Fund><Name>Renamed &amp; more</Name><MemberLimit>5</MemberLimit></Fund>'
    const write = { method: 'POST', body: xml, headers: { 'Content-Type': 'application/xml' } }
    expect(await ask(DETAIL, write)).toMatchObject({ status: 200, body: '{"Errors":[],"Data":{}}' })
    const sent = tap.taken()
    expect(sent).toMatch(/^POST .*\r\n/)
    expect(sent).toMatch(/\r\ncontent-type: application\/json\r\n/i)
    expect(sent.split('\r\n\r\n')[1]).toBe('{"Name":"Renamed & more","MemberLimit":5}')
    const { body } = await ask(DETAIL)
    expect(JSON.parse(body)).toMatchObject({ Data: { Name: 'Renamed & more', MemberLimit: 5 } })
    const original = (
      JSON.parse((await send(memory, { target: DETAIL, headers: bearer(memoryToken) })).body) as {
        Data: { Name: string; MemberLimit: number }
      }
    ).Data
    const back = JSON.stringify({ Name: original.Name, MemberLimit: original.MemberLimit })
    const json = { method: 'POST', body: back, headers: { 'Content-Type': 'application/json' } }
    expect(await ask(DETAIL, json)).toMatchObject({ status: 200 })
  })

  it('C4, C8.2: what is refused never reaches it, nor does the token of what is not', async () => {
    tap.taken()
    const refused = [
      ask(LIST, { headers: { Authorization: undefined } }),
      ask(LIST.replace('ACME', 'GLOBEX')),
      ask(`${LIST}/..%2f`),
      ask(LIST, { method: 'DELETE' }),
      ask(LIST, { headers: { Accept: 'image/png' } }),
      ask(DETAIL, { method: 'POST', body: '{"Colour":1}', headers: { 'Content-Type': 'application/json' } }),
    ]
    for (const { status } of await Promise.all(refused)) expect(status).toBeGreaterThanOrEqual(400)
    expect(tap.taken()).toBe('')
    await ask(LIST)
    expect(tap.taken()).not.toContain(token.slice(0, 20))
  })
})
