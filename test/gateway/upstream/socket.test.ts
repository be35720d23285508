import { randomBytes, X509Certificate } from 'node:crypto'
import dns from 'node:dns'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer, TLSSocket, type SecureVersion } from 'node:tls'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Clock } from '../../../src/base/kernel/clock.ts'
import {
  parseUpstreamAddress,
  socketOpener,
  type OpenSocket,
  type UpstreamTls,
} from '../../../src/gateway/upstream/socket.ts'
import { certificateFolder, makeAuthority } from '../../support/certificates.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { shared } from '../../support/shared.ts'
import {
  answering,
  bodyOf,
  faulty,
  listen,
  OK,
  openConnection,
  openPool,
  says,
  textOf,
  WHOLE,
  type Behaviour,
} from '../../support/upstream-connections.ts'

/** Of loopback, and nobody else’s: the other family’s port may be taken on 127.0.0.1. */
const OWN = '127.13.57.1'

describe('where an upstream is', () => {
  it.each([
    ['::1', ['::1', OWN]],
    [OWN, ['::1', OWN]],
    [OWN, [OWN, '::1']],
    ['::1', [OWN, '::1']],
  ])('C8.4 a name with two addresses, of which %s alone listens (%j)', async (listening, addresses) => {
    const server = createServer(answering((socket) => socket.write(WHOLE)))
    const port = await listen(server, listening)
    const lookup = vi.spyOn(dns, 'lookup') as unknown as {
      mockImplementation(f: unknown): void
      mockRestore(): void
    }
    onTestFinished(() => lookup.mockRestore())
    lookup.mockImplementation((_: string, __: object, found: (error: null, all: object[]) => void) =>
      found(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
    )
    const { call } = openConnection(`http://two.test:${port}`)
    for (let nth = 0; nth < 2; nth += 1) expect(await textOf(call().answer)).toBe('ok')
  })

  it('C8.4 a unix socket; and one that is not there, or cannot be', async () => {
    const path = join(certificateFolder(), 'up.sock')
    await listen(createServer(answering(says(WHOLE))), path)
    const { call } = openConnection(`unix:${path}`)
    for (let nth = 0; nth < 2; nth += 1) expect(await textOf(call().answer)).toBe('ok')
    for (const nowhere of [`${path}.not`, `/${'x'.repeat(300)}`])
      await expect(openConnection(`unix:${nowhere}`).call().answer).rejects.toEqual(
        faulty('upstream_unreachable'),
      )
  })
})

/** A certificate, its key and its authority. What openssl makes takes longer than a test. */
const bearing = shared((name: string) => {
  const authority = makeAuthority(certificateFolder())
  const { certificate, key } = authority.issue('up', name)
  const pem = { cert: readFileSync(certificate), key: readFileSync(key) }
  return Promise.resolve({ pem, ca: readFileSync(authority.certificate) })
})

describe('TLS', () => {
  async function secure(name: string, behave: Behaviour) {
    const { pem, ca } = await bearing(name)
    const server = createTlsServer({ ...pem, ALPNProtocols: ['http/1.1'] }, answering(behave) as never)
    const port = await listen(server)
    return { url: `https://127.0.0.1:${port}`, ca }
  }

  it('C8.4 one that bears the address: many calls, a large body, nothing mixed', async () => {
    const content = randomBytes(2_000_000)
    const long = Buffer.concat([Buffer.from(`${OK}Content-Length: ${content.length}\r\n\r\n`), content])
    const { url, ca } = await secure('IP:127.0.0.1', (socket, nth) => socket.write(nth % 2 ? long : WHOLE))
    const calls = Array.from({ length: 6 }, async () => {
      const { call, told } = openConnection(url, { tls: { ca } })
      for (let round = 0; round < 3; round += 1) {
        expect((await bodyOf(await call().answer)).equals(content)).toBe(true)
        expect(await textOf(call().answer)).toBe('ok')
      }
      expect(told).toEqual(Array<string>(6).fill('freed'))
    })
    await Promise.all(calls)
  })

  it('C8.4 another name, or an authority that is not ours: nothing is sent', async () => {
    let requests = 0
    const { url, ca } = await secure('IP:127.0.0.2', () => (requests += 1))
    for (const tls of [{ ca }, {}, { ca, servername: 'other.test' }]) {
      const { call, told } = openConnection(url, { tls })
      await expect(call().answer).rejects.toEqual(faulty('upstream_unreachable'))
      expect(told).toEqual(['closed'])
    }
    expect(requests).toBe(0)
  })

  const CUT = [
    ['a length', `${OK}Content-Length: 9\r\n\r\nhello`, 'upstream_unreachable', undefined],
    ['chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`, 'upstream_unreachable', undefined],
    // Node tells no difference between an end that TLS announced and one that anybody on the way can make.
    ['the end of the connection', `${OK}\r\nhello`, 'upstream_broken', 'hello'],
  ] as const
  const ENDS = [
    ['cut below, without its close_notify,', (below: Socket) => below.end()],
    ['ended as TLS wants it', (_below: Socket, above: TLSSocket) => above.end()],
  ] as const
  const cases = CUT.flatMap((cut) => ENDS.map((end) => [...cut, ...end] as const))
  it.each(cases)(
    'T5.2 a body of %s (%j) is not whole: %s, %s, %s',
    async (_f, bytes, fault, accepted, _h, end) => {
      const { pem, ca } = await bearing('IP:127.0.0.1')
      const server = createServer((below) => {
        const above = new TLSSocket(below, { ...pem, isServer: true, ALPNProtocols: ['http/1.1'] })
        above.on('error', () => undefined)
        above.once('data', () => above.write(bytes, () => end(below, above)))
      })
      const url = `https://127.0.0.1:${await listen(server)}`
      const tls = { ca }
      const { call, closed } = openConnection(url, { tls })
      await expect(textOf(call().answer)).rejects.toEqual(faulty(fault))
      await closed
      // Streamed: what came is passed on, and then cut.
      const streamed = openConnection(url, { tls }).call({ eager: false }).answer
      await expect(streamed.then(bodyOf)).rejects.toThrow()
      const accepting = textOf(openConnection(url, { tls, acceptsCloseDelimited: true }).call().answer)
      if (accepted === undefined) await expect(accepting).rejects.toEqual(faulty(fault))
      else expect(await accepting).toBe(accepted)
    },
  )
})

describe('TLS sessions', () => {
  /** Counts handshakes in full and resumed ones. */
  async function counting(version: SecureVersion) {
    const { pem, ca } = await bearing('IP:127.0.0.1')
    const count = { full: 0, resumed: 0 }
    const server = createTlsServer({ ...pem, minVersion: version, maxVersion: version })
    server.on('secureConnection', (socket) => {
      count[socket.isSessionReused() ? 'resumed' : 'full'] += 1
      answering(says(WHOLE))(socket)
    })
    const url = `https://127.0.0.1:${await listen(server)}`
    return { url, server, count, ca, cert: pem.cert }
  }

  /** A call over a connection of its own. */
  const callOnce = (url: string, open: OpenSocket): Promise<string> =>
    textOf(openConnection(url, { open, keep: 0 }).call().answer)

  const opener = (url: string, tls: UpstreamTls, clock?: Clock): OpenSocket =>
    socketOpener(parseUpstreamAddress(url)!, tls, clock)

  it.each<SecureVersion>(['TLSv1.2', 'TLSv1.3'])(
    'T5.1 of 30 connections to one target, one after the other, one makes a full handshake (%s)',
    async (version) => {
      const { url, count, ca } = await counting(version)
      const { call } = openPool(url, { tls: { ca } })
      for (let nth = 0; nth < 30; nth += 1) expect(await textOf(call({ fresh: true }).answer)).toBe('ok')
      expect(count).toEqual({ full: 1, resumed: 29 })
    },
  )

  it('T5.1 are resumed for the same target and TLS configuration only', async () => {
    const { url, count, ca } = await counting('TLSv1.3')
    const first = opener(url, { ca })
    await callOnce(url, first)
    // Who trusts another authority, or expects another name, checks the certificate and refuses it.
    const other = readFileSync(makeAuthority(certificateFolder()).certificate)
    for (const tls of [{ ca: other }, { ca, servername: 'other.test' }])
      await expect(callOnce(url, opener(url, tls))).rejects.toEqual(faulty('upstream_unreachable'))
    count.full = count.resumed = 0
    await callOnce(url, opener(url, { ca }))
    expect(count).toEqual({ full: 1, resumed: 0 })
    await callOnce(url, first)
    expect(count).toEqual({ full: 1, resumed: 1 })
  })

  it('T5.1 are resumed for ten minutes after the certificate was checked, however often they were used', async () => {
    const { url, count, ca } = await counting('TLSv1.3')
    const clock = movableClock(Date.now())
    const open = opener(url, { ca }, clock)
    for (let minute = 0; minute < 10; minute += 1) {
      await callOnce(url, open)
      clock.advance(60_000)
    }
    expect(count).toEqual({ full: 1, resumed: 9 })
    await callOnce(url, open)
    expect(count).toEqual({ full: 2, resumed: 9 })
  })

  it('T5.1 are not resumed when the certificate that was checked is no longer valid', async () => {
    const { url, count, ca, cert } = await counting('TLSv1.3')
    const clock = movableClock(Date.parse(new X509Certificate(cert).validTo) - 60_000)
    const open = opener(url, { ca }, clock)
    for (let half = 0; half < 3; half += 1) {
      await callOnce(url, open)
      clock.advance(30_000)
    }
    expect(count).toEqual({ full: 2, resumed: 1 })
  })

  it('C8.4 are forgotten when the handshake with them fails', async () => {
    const { url, server, count, ca } = await counting('TLSv1.3')
    const open = opener(url, { ca })
    await callOnce(url, open)
    server.once('connection', (below: Socket) => below.destroy())
    await expect(callOnce(url, open)).rejects.toEqual(faulty('upstream_unreachable'))
    await callOnce(url, open)
    expect(count).toEqual({ full: 2, resumed: 0 })
  })
})
