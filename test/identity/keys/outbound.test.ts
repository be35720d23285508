import { readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createOutboundClient, OutboundRefused } from '../../../src/identity/keys/remote/outbound.ts'
import { certificateFolder, makeCertificate } from '../../support/certificates.ts'
import { type IssuerAnswer, startIssuerServer } from '../../support/issuer-server.ts'
import { needing } from '../../support/machine.ts'

const ELSEWHERE = 'https://id.example'
const HERE = 'http://127.0.0.1:8080'
const headers = { accept: 'application/json' }

const portOf = (url: string): string => new URL(url).port

/** A server on loopback, and clients that reach it. */
async function serve(answer: IssuerAnswer) {
  const server = await startIssuerServer()
  server.answers.set('/asked', answer)
  return { ...server, url: `${server.url}/asked` }
}

/** Counts connections to a port of loopback that speaks nothing. */
async function countConnections(): Promise<{ readonly port: number; readonly count: () => number }> {
  let count = 0
  const server: Server = createServer((socket) => {
    count += 1
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, count: () => count }
}

/** Resolves names to addresses in turn; the last one stays. */
function resolving(...turns: readonly (readonly string[])[]) {
  const asked: string[] = []
  return {
    asked,
    resolve: (
      host: string,
      done: (error: Error | null, found: { address: string; family: number }[]) => void,
    ) => {
      const found = turns[Math.min(asked.length, turns.length - 1)] ?? []
      asked.push(host)
      done(
        null,
        found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
    },
  }
}

describe('requests to addresses of clients', () => {
  it('sends a GET or a POST, and answers with status and body', async () => {
    const server = await serve({ good: 1 })
    const send = createOutboundClient({ allow: [], authUrl: HERE })
    const answer = await send({ url: server.url, headers, largest: 100 })
    expect(answer).toMatchObject({ status: 200 })
    expect(answer.body?.toString()).toBe('{"good":1}')
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect(await send({ url: server.url, headers: form, body: 'a=1' })).toEqual({
      status: 200,
      body: undefined,
    })
    expect(server.requests).toMatchObject([
      { method: 'GET', headers: { accept: 'application/json', connection: 'close' } },
      { method: 'POST', body: 'a=1', headers: { 'content-length': '3' } },
    ])
  })

  it('T3.18 a redirect is an answer, and is not followed', async () => {
    const other = await serve({})
    const server = await serve((response) =>
      response.writeHead(302, { location: other.url }).end('elsewhere'),
    )
    const send = createOutboundClient({ allow: [], authUrl: HERE })
    expect(await send({ url: server.url, headers })).toMatchObject({ status: 302 })
    expect(other.requests).toEqual([])
  })

  it('an answer that is too large, breaks off or does not come is none', async () => {
    const send = createOutboundClient({ allow: [], authUrl: HERE })
    const large = await serve((response) => response.end('x'.repeat(101)))
    await expect(send({ url: large.url, headers, largest: 100 })).rejects.toBeInstanceOf(RangeError)
    const broken = await serve((response) => {
      response.writeHead(200, { 'content-length': 100 }).write('x', () => response.destroy())
    })
    await expect(send({ url: broken.url, headers, largest: 100 })).rejects.toBeInstanceOf(RangeError)
    const cancel = new AbortController()
    const silent = await serve(() => cancel.abort(new Error('no time left')))
    await expect(send({ url: silent.url, headers, largest: 100, signal: cancel.signal })).rejects.toThrow()
    const half = new AbortController()
    const dripping = await serve((response) => response.write('x', () => half.abort()))
    await expect(send({ url: dripping.url, headers, largest: 9, signal: half.signal })).rejects.toThrow()
  })

  it('T5.20 an answer in another protocol, which node gives nobody, is none: nothing waits for it', async () => {
    const send = createOutboundClient({ allow: [], authUrl: HERE })
    const switching = await serve(({ socket }) =>
      socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'),
    )
    for (const wanted of [{}, { largest: 100 }, { body: 'a=1' }])
      await expect(send({ url: switching.url, headers, ...wanted })).rejects.toThrow(/without an answer/)
  })

  it.each([
    'http://issuer.example/',
    'http://10.0.0.1/',
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'http://[::ffff:10.0.0.1]/',
  ])('T3.18 %s is neither https nor on loopback', async (url) => {
    const { resolve, asked } = resolving(['93.184.215.14'])
    const send = createOutboundClient({ allow: ['0.0.0.0/0', '::/0'], authUrl: HERE, resolve })
    await expect(send({ url, headers })).rejects.toBeInstanceOf(OutboundRefused)
    expect(asked).toEqual([])
  })
})

describe('T3.18 a connection goes to public addresses only', () => {
  it.each([
    ['127.0.0.1', 'http'],
    ['127.0.0.1', 'https'],
    ['0x7f.1', 'http'],
    ['2130706433', 'https'],
    ['0177.0.0.1', 'https'],
    ['[::ffff:127.0.0.1]', 'https'],
    ['[64:ff9b::7f00:1]', 'https'],
    ['0.0.0.0', 'https'],
    ['169.254.169.254', 'https'],
  ])('T3.18 %s, written out, is not called by %s', async (host, scheme) => {
    const { port, count } = await countConnections()
    const send = createOutboundClient({ allow: [], authUrl: ELSEWHERE })
    await expect(send({ url: `${scheme}://${host}:${port}/`, headers })).rejects.toBeInstanceOf(
      OutboundRefused,
    )
    expect(count()).toBe(0)
  })

  it('T3.18 a loopback address is, where the service itself is on loopback, and others are not', async () => {
    const server = await serve({})
    const send = createOutboundClient({ allow: [], authUrl: HERE })
    expect(await send({ url: server.url, headers })).toMatchObject({ status: 200 })
    for (const host of ['10.0.0.1', '169.254.169.254', '[fd00::1]', '0.0.0.0'])
      await expect(send({ url: `https://${host}/`, headers })).rejects.toBeInstanceOf(OutboundRefused)
  })

  it('T3.18 a name that resolves to loopback is not called, also on loopback, unless it is allowed', async () => {
    const server = await serve({ here: true })
    const url = `http://localhost:${portOf(server.url)}/asked`
    const { resolve, asked } = resolving(['::1', '127.0.0.1'])
    const strict = createOutboundClient({ allow: [], authUrl: HERE, resolve })
    await expect(strict({ url, headers })).rejects.toBeInstanceOf(OutboundRefused)
    expect(server.requests).toEqual([])
    const allowing = createOutboundClient({ allow: ['127.0.0.0/8'], authUrl: ELSEWHERE, resolve })
    expect(await allowing({ url, headers })).toMatchObject({ status: 200 })
    expect(asked).toEqual(['localhost', 'localhost'])
  })

  it('T3.18 a name is resolved once a request, and that answer is judged: rebinding finds no second one', async () => {
    const { port, count } = await countConnections()
    const { resolve, asked } = resolving(['127.0.0.1'], ['127.0.0.1', '::1'], ['::ffff:127.0.0.1'], [])
    const send = createOutboundClient({ allow: [], authUrl: ELSEWHERE, resolve })
    for (const turn of [1, 2, 3, 4]) {
      const error: unknown = await send({ url: `https://rebound.example:${port}/`, headers }).catch(
        (e: unknown) => e,
      )
      expect(error, `turn ${turn}`).toBeInstanceOf(OutboundRefused)
      expect((error as Error).message).not.toContain('127')
    }
    expect(asked).toHaveLength(4)
    expect(count()).toBe(0)
  })

  it('T3.18 of several addresses only those are called that are allowed', async () => {
    const server = await serve({})
    const { resolve } = resolving(['10.255.255.1', '127.0.0.1', '::1'])
    const send = createOutboundClient({ allow: ['127.0.0.1'], authUrl: ELSEWHERE, resolve })
    const url = `http://localhost:${portOf(server.url)}/asked`
    expect(await send({ url, headers })).toMatchObject({ status: 200 })
  })

  it('T3.18 no connection is kept for the next request', async () => {
    const server = await serve({})
    const turns = resolving(['127.0.0.1'], ['127.0.0.1'], ['10.0.0.1'])
    const send = createOutboundClient({ allow: ['127.0.0.1'], authUrl: ELSEWHERE, resolve: turns.resolve })
    const url = `http://localhost:${portOf(server.url)}/asked`
    await send({ url, headers })
    await send({ url, headers, largest: 100 })
    await expect(send({ url, headers })).rejects.toBeInstanceOf(OutboundRefused)
    expect(server.requests).toHaveLength(2)
  })
})

it('T3.18 a server is called by its certificate', needing('openssl'), async () => {
  const { certificate, key } = makeCertificate(certificateFolder(), 'client')
  const requests: string[] = []
  const server = createHttpsServer(
    { cert: readFileSync(certificate), key: readFileSync(key) },
    ({ url }, response) => {
      requests.push(url ?? '')
      response.end('{}')
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
  const send = createOutboundClient({ allow: [], authUrl: HERE })
  await expect(send({ url, headers })).rejects.toThrow('self-signed certificate')
  expect(requests).toEqual([])
})
