import { StreamInPieces } from '../../src/base/http/body/pieces.ts'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { certificateFolder, makeCertificate, type TestCertificate } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { startListener, type TestListener } from '../support/listener.ts'
import { postern } from '../support/start-postern.ts'

interface Got {
  readonly status: number
  readonly body: string
  readonly subject: string
}

const subjectOf = (socket: Socket): string =>
  socket instanceof TLSSocket ? String(socket.getPeerCertificate().subject.CN) : 'none'

/** One call with node:https, which verifies the certificate. */
function call(port: number, ca: string, agent: Agent, path = '/api/x'): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, ca, agent }, (response) => {
      const subject = subjectOf(response.socket)
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body, subject }))
    })
    sent.on('error', reject).end()
  })
}

function agent(): Agent {
  const made = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => made.destroy())
  return made
}

async function secured(door?: Parameters<typeof startListener>[0]): Promise<TestListener & TestCertificate> {
  const files = makeCertificate(certificateFolder(), 'first')
  return { ...(await startListener(door, { tls: files })), ...files }
}

const pem = (file: string): string => readFileSync(file, 'utf8')

/** A connection with TLS on which anything can be written. */
async function openTls(port: number, ca: string, options: object = {}): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, ca, ...options })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

async function textOf(socket: TLSSocket): Promise<string> {
  let all = ''
  socket.setEncoding('latin1').on('data', (text: string) => (all += text))
  await new Promise((resolve) => socket.once('close', resolve).on('error', () => undefined))
  return all
}

/** What openssl shows of one answer, errors at the end included. */
async function byOpenssl(port: number, ca: string, bytes: string): Promise<string> {
  const how = ['s_client', '-quiet', '-verify_return_error', '-CAfile', ca]
  const client = spawn('openssl', [...how, '-connect', `127.0.0.1:${port}`])
  onTestFinished(() => void client.kill())
  let shown = ''
  for (const stream of [client.stdout, client.stderr])
    stream.setEncoding('latin1').on('data', (text: string) => (shown += text))
  client.stdin.write(bytes)
  await once(client, 'close')
  return shown
}

describe('TLS on the public listener', () => {
  it('serves calls, over connections that are kept, and says https of them', async () => {
    const { port, certificate, seen } = await secured()
    const kept = agent()
    const ca = pem(certificate)
    expect(await call(port, ca, kept)).toMatchObject({ status: 200, body: 'GET /api/x ', subject: 'first' })
    await call(port, ca, kept)
    expect(seen.map(({ scheme }) => scheme)).toEqual(['https', 'https'])
  })

  it('takes a new certificate up while it serves; a connection that stands goes on', async () => {
    const { port, certificate, key } = await secured()
    const next = makeCertificate(certificateFolder(), 'second')
    const before = agent()
    const ca = pem(certificate) + pem(next.certificate)
    await call(port, ca, before)
    writeFileSync(certificate, readFileSync(next.certificate))
    writeFileSync(key, readFileSync(next.key))
    await eventually(async () => expect((await call(port, ca, agent())).subject).toBe('second'))
    const still = await call(port, ca, before)
    expect(still).toMatchObject({ status: 200, subject: 'first' })
  })

  it('speaks TLS 1.2 and 1.3 and nothing older', async () => {
    const { port, certificate } = await secured()
    const ca = pem(certificate)
    const old = { minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }
    expect((await openTls(port, ca, { maxVersion: 'TLSv1.2' })).getProtocol()).toBe('TLSv1.2')
    expect((await openTls(port, ca)).getProtocol()).toBe('TLSv1.3')
    await expect(openTls(port, ca, { ...old, maxVersion: 'TLSv1.1' })).rejects.toThrow()
  })

  it('offers HTTP/1.1, and HTTP/1.0 to those who ask for it', async () => {
    const { port, certificate } = await secured()
    const oldest = await openTls(port, pem(certificate), { ALPNProtocols: ['http/1.0'] })
    expect(oldest.alpnProtocol).toBe('http/1.0')
    const socket = await openTls(port, pem(certificate), { ALPNProtocols: ['h2', 'http/1.1'] })
    expect(socket.alpnProtocol).toBe('http/1.1')
  })

  it('ends a connection that does not begin with a handshake, and serves on', async () => {
    const { port, certificate, events } = await secured()
    const socket = connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    socket.resume()
    await once(socket, 'close')
    expect((await call(port, pem(certificate), agent())).status).toBe(200)
    expect(events.decisions.filter(({ door }) => door === 'none')).toEqual([])
  })

  it('C2.3 answers an unreadable request in its envelope, over TLS too', async () => {
    const { port, certificate, events } = await secured()
    const socket = await openTls(port, pem(certificate))
    const answer = textOf(socket)
    socket.write('GET / HTTP/1.1\r\nbad header\r\n\r\n')
    expect(await answer).toMatch(/^HTTP\/1\.1 400 [^]*API_BAD_REQUEST/)
    expect(events.decisions[0]?.exchange.scheme).toBe('https')
  })

  it('T5.2 cuts a body that breaks, so that it never looks whole', async () => {
    const broken = () =>
      Readable.from(
        (async function* () {
          yield Buffer.from('begun')
          await Promise.resolve()
          throw new Error('broken')
        })(),
      )
    const { port, certificate } = await secured(() => ({
      status: 200,
      headers: {},
      body: new StreamInPieces(broken()),
    }))
    // Node's client does not tell an end without close_notify from a proper one; OpenSSL does. What was written just
    // before the cut may or may not have left.
    expect(await byOpenssl(port, certificate, 'GET /api/x HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n')).toMatch(
      /unexpected eof/,
    )
    const ca = pem(certificate)
    await expect(call(port, ca, agent())).rejects.toThrow(/aborted|socket hang up/)
  })

  it('serves the whole of Postern: its URLs are https, and it closes at once', async () => {
    const files = makeCertificate(certificateFolder(), 'whole')
    const { port, baseUrl, authUrl } = await postern({
      change: (loaded) => ({ ...loaded, server: { ...loaded.server, tls: files } }),
    })
    const expected = `https://127.0.0.1:${port}`
    expect([baseUrl, authUrl]).toEqual([expected, expected])
    const { body } = await call(port, pem(files.certificate), agent(), '/.well-known/openid-configuration')
    expect(JSON.parse(body)).toMatchObject({ issuer: expected })
  })
})
