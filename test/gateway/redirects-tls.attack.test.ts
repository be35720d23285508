import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  certificateFolder,
  makeAuthority,
  makeCertificate,
  type TestAuthority,
  type TestCertificate,
} from '../support/certificates.ts'
import { type ForwardingBackend, withForwardedActions } from '../support/forwarded-action.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const HERE = 'IP:127.0.0.1'
const NAMED = 'DNS:localhost'

interface Asked {
  readonly target: string
  readonly headers: Readonly<Record<string, unknown>>
  /** The common name of the client certificate; undefined where none was shown. */
  readonly shown: string | undefined
  /** What the handshake said whom it was for. */
  readonly serverName: unknown
}

interface TlsServer {
  readonly port: number
  readonly asked: Asked[]
  /** Answers with a redirect to there; undefined: answers data. */
  redirectTo: (location: string | undefined) => void
}

/** Node gives an empty object where no certificate was shown. */
const shownOn = (socket: TLSSocket): string | undefined => {
  const { subject } = socket.getPeerCertificate() as { readonly subject?: { readonly CN?: string } }
  return subject?.CN
}

const serverNameOf = (socket: TLSSocket): unknown => Reflect.get(socket, 'servername')

/** Takes a client certificate from whoever shows one, and asks for it. Ends with the test. */
async function startTls({ certificate, key }: TestCertificate): Promise<TlsServer> {
  const asked: Asked[] = []
  let location: string | undefined
  const files = { cert: readFileSync(certificate), key: readFileSync(key) }
  const server = createServer(
    { ...files, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const { socket } = request
      if (!(socket instanceof TLSSocket)) throw new TypeError('a server of https has sockets with TLS')
      const { url: target = '', headers } = request
      asked.push({ target, headers, shown: shownOn(socket), serverName: serverNameOf(socket) })
      if (location === undefined || target.endsWith('/moved'))
        response.setHeader('Content-Type', 'application/json').end('{"at":1}')
      else response.writeHead(302, { Location: location }).end()
    },
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    redirectTo: (place) => {
      location = place
    },
  }
}

let plain: Upstream
beforeAll(async () => {
  plain = await openUpstream(answerJson({ at: 'plain' }))
})
afterAll(() => plain.close())

/** A gateway in front of these targets, and how it is asked. */
async function before(targets: readonly string[], change: Partial<ForwardingBackend>) {
  const gateway = await postern({
    config: 'upstream.yaml',
    keeps: 'nothing',
    change: withForwardedActions({}, ({ target, ...rest }) => {
      expect(target).toBeDefined()
      return { ...rest, targets, ...change }
    }),
  })
  const headers = bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)
  return { gateway, ask: () => send(gateway, { target: LIST, headers }) }
}

interface Scene {
  readonly authority: TestAuthority
  readonly own: TlsServer
  readonly ca: string
  readonly clientTls: { verify: 'always'; ca: string; cert: string; key: string }
}

/** What openssl makes takes longer than a test. */
const made = shared(() => {
  const authority = makeAuthority(certificateFolder())
  const client = authority.issue('postern', 'DNS:postern.internal')
  return Promise.resolve({
    authority,
    client,
    certificate: authority.issue('own', `${HERE},DNS:funds.internal`),
  })
})

/** A service of one's own authority, to which Postern shows a client certificate. */
async function scene(): Promise<Scene> {
  const { authority, client, certificate } = await made()
  const own = await startTls(certificate)
  const ca = authority.certificate
  const clientTls = { verify: 'always', ca, cert: client.certificate, key: client.key } as const
  return { authority, own, ca, clientTls }
}

describe('C8.8 redirects over TLS', () => {
  it('C8.8 within the target’s origin, with its client certificate', async () => {
    const { own, clientTls } = await scene()
    own.redirectTo('/moved')
    const { ask } = await before([`https://127.0.0.1:${own.port}`], {
      tls: clientTls,
      redirects: { max: 1, within: ['/moved'], origins: [] },
    })
    expect((await ask()).body).toBe('{"Errors":[],"Data":{"at":1}}')
    expect(own.asked.map(({ target, shown }) => [target, shown])).toEqual([
      [LIST, 'postern'],
      ['/moved', 'postern'],
    ])
    expect(own.asked[1]?.headers).toEqual(own.asked[0]?.headers)
  })

  it('C8.8 to an origin that is named: verified by its own name, and shown no certificate of ours', async () => {
    const { authority, own, clientTls } = await scene()
    const other = await startTls(authority.issue('other', NAMED))
    const origin = `https://localhost:${other.port}`
    own.redirectTo(`${origin}/file`)
    const { ask } = await before([`https://127.0.0.1:${own.port}`], {
      // The name that the target's own certificate bears: none of the other's concern.
      tls: { ...clientTls, serverName: 'funds.internal' },
      redirects: { max: 1, within: [], origins: [origin] },
    })
    expect((await ask()).body).toBe('{"Errors":[],"Data":{"at":1}}')
    expect(own.asked.map(({ shown, serverName }) => [shown, serverName])).toEqual([
      ['postern', 'funds.internal'],
    ])
    expect(other.asked.map(({ target, shown, serverName }) => [target, shown, serverName])).toEqual([
      ['/file', undefined, 'localhost'],
    ])
    expect(Object.keys(other.asked[0]?.headers ?? {}).toSorted()).toEqual([
      'accept',
      'connection',
      'host',
      'traceparent',
    ])
  })

  it('C8.8 the service itself is another origin once a redirect came from one: it is shown no certificate', async () => {
    const { authority, own, clientTls } = await scene()
    const other = await startTls(authority.issue('other', HERE))
    const [home, away] = [own, other].map(({ port }) => `https://127.0.0.1:${port}`) as [string, string]
    own.redirectTo(`${away}/there`)
    other.redirectTo(`${home}/moved`)
    const { ask } = await before([home], {
      tls: clientTls,
      redirects: { max: 2, within: [], origins: [home, away] },
    })
    expect((await ask()).status).toBe(200)
    expect(own.asked.map(({ target, shown }) => [target, shown])).toEqual([
      [LIST, 'postern'],
      ['/moved', undefined],
    ])
  })

  it.each([
    ['bears another name', (authority: TestAuthority) => authority.issue('other', 'DNS:elsewhere.example')],
    ['bears the target’s name', (authority: TestAuthority) => authority.issue('other', 'DNS:funds.internal')],
    ['has expired', (authority: TestAuthority) => authority.issue('other', HERE, -1)],
    ['is of nobody’s authority', () => makeCertificate(certificateFolder(), 'alone')],
    ['is of another authority', () => makeAuthority(certificateFolder()).issue('other', HERE)],
  ])('C8.8 an origin whose certificate %s is told nothing, and the call is 503', async (_how, issue) => {
    const { authority, own, clientTls } = await scene()
    const other = await startTls(issue(authority))
    const origin = `https://127.0.0.1:${other.port}`
    own.redirectTo(`${origin}/file`)
    const { ask } = await before([`https://127.0.0.1:${own.port}`], {
      tls: { ...clientTls, serverName: 'funds.internal' },
      redirects: { max: 1, within: [], origins: [origin] },
    })
    expectFault(await ask(), 'upstream_unreachable')
    expect(own.asked.length).toBeGreaterThan(0)
    expect(other.asked).toEqual([])
  })

  it('C8.8, T7 verify: off-insecure is for the targets alone', async () => {
    const folder = certificateFolder()
    const own = await startTls(makeCertificate(folder, 'own'))
    const other = await startTls(makeCertificate(folder, 'other'))
    const origin = `https://127.0.0.1:${other.port}`
    const { ask } = await before([`https://127.0.0.1:${own.port}`], {
      tls: { verify: 'off-insecure' },
      redirects: { max: 1, within: [], origins: [origin] },
    })
    expect((await ask()).status).toBe(200)
    own.redirectTo(`${origin}/file`)
    expectFault(await ask(), 'upstream_unreachable')
    expect(other.asked).toEqual([])
  })

  it('C8.8 never from https to http, named or not, to another origin or to the same port', async () => {
    const { own, clientTls } = await scene()
    const { gateway, ask } = await before([`https://127.0.0.1:${own.port}`], {
      tls: clientTls,
      redirects: { max: 2, within: [], origins: [plain.url] },
    })
    for (const place of [plain.url, `http://127.0.0.1:${own.port}`, 'http://elsewhere.example']) {
      own.redirectTo(`${place}/file`)
      const response = await ask()
      expectFault(response, 'upstream_broken')
      const line = gateway.log().find(({ requestId }) => requestId === response.headers['x-request-id'])
      expect(JSON.stringify(line)).toContain('it leads from https to http')
    }
    expect(own.asked).toHaveLength(3)
    expect(plain.requests).toEqual([])
  })

  it('C8.8 never from https to http, from an origin that is named either, wherever the call began', async () => {
    const { authority, clientTls } = await scene()
    const first = await openUpstream()
    onTestFinished(() => first.close())
    const secure = await startTls(authority.issue('secure', HERE))
    const origin = `https://127.0.0.1:${secure.port}`
    first.behave((connection) => connection.respond({ status: 307, headers: { Location: `${origin}/file` } }))
    const { ask } = await before([first.url], {
      tls: clientTls,
      redirects: { max: 3, within: [], origins: [origin, plain.url] },
    })
    expect((await ask()).status).toBe(200)
    secure.redirectTo(`${plain.url}/file`)
    expectFault(await ask(), 'upstream_broken')
    expect(secure.asked.map(({ shown }) => shown)).toEqual([undefined, undefined])
    expect(plain.requests).toEqual([])
  })
})
