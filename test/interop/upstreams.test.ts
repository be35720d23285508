import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { fundsOf, type HttpConfig } from '../support/changed-funds.ts'
import {
  certificateFolder,
  makeAuthority,
  makeCertificate,
  type TestCertificate,
} from '../support/certificates.ts'
import { needing } from '../support/machine.ts'
import { startNginx, type Nginx } from '../support/nginx.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { postern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** In front of servers that others wrote: nginx over TCP and a unix socket, and TLS with an authority of one's own. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'

/** A gateway in front of `targets`, and how to ask it. */
async function before(targets: readonly string[], change: Partial<HttpConfig> = {}) {
  const gateway = await postern({
    config: 'upstream.yaml',
    change: (loaded) => {
      const funds = fundsOf(loaded)
      const { target, ...rest } = funds
      expect(target).toBeDefined()
      return { ...loaded, backends: { ...loaded.backends, funds: { ...rest, targets, ...change } } }
    },
  })
  const authorization = bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)
  const ask = (sent: Partial<Sent> = {}) =>
    send(gateway, { target: LIST, ...sent, headers: { ...authorization, ...sent.headers } })
  return { gateway, ask }
}

describe('C8.1 nginx as an upstream', needing('nginx'), () => {
  const ECHO = `location / {
    return 200 '{"uri":"$request_uri","host":"$host","client":"$http_x_postern_client","served":"$connection_requests"}';
  }`

  it.each([
    ['over TCP', (nginx: Nginx) => nginx.url, '127.0.0.1'],
    ['over a unix socket', (nginx: Nginx) => nginx.socketUrl, 'localhost'],
  ])(
    'C8.2 is asked %s for the canonical target, over connections that are kept',
    async (_how, addressOf, host) => {
      const nginx = await startNginx(ECHO)
      const { ask } = await before([addressOf(nginx)])
      for (let call = 1; call <= 3; call++) {
        const { Data } = JSON.parse((await ask({ target: `${LIST}?a=%41&b=..` })).body)
        expect(Data).toEqual({ uri: `${LIST}?a=%41&b=..`, host, client: 'acme-books', served: String(call) })
      }
    },
  )

  it('C8.2 is asked for another path, and by another Host, where the configuration says so', async () => {
    const nginx = await startNginx(ECHO)
    const { ask } = await before([`${nginx.url}/base`], {
      path: '/v2/{business}/{fund}/{action}',
      host: 'funds.internal',
    })
    const { Data } = JSON.parse((await ask({ target: `${DETAIL}?q` })).body)
    expect(Data).toMatchObject({ uri: '/base/v2/ACME/SUPER1/fund-detail?q', host: 'funds.internal' })
  })

  it('T5.1 closes kept connections after a few calls, and is reloaded meanwhile: none of 600 GETs fails', async () => {
    const nginx = await startNginx(`keepalive_requests 7; ${ECHO}`)
    const { ask } = await before([nginx.url])
    for (let round = 0; round < 30; round++) {
      if (round % 10 === 5) nginx.reload()
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask()))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    }
  })

  it('C8.4 stops and starts again: 503 meanwhile, and 200 at once afterwards; with a second one 200 all the time', async () => {
    const [first, second] = await Promise.all([startNginx(ECHO), startNginx(ECHO)])
    const alone = await before([first.url])
    const both = await before([first.url, second.url])
    const statuses = async ({ ask }: typeof alone): Promise<ReadonlySet<number>> =>
      new Set((await Promise.all(Array.from({ length: 20 }, () => ask()))).map(({ status }) => status))
    expect([await statuses(alone), await statuses(both)]).toEqual([new Set([200]), new Set([200])])
    await first.stop()
    expect([await statuses(alone), await statuses(both)]).toEqual([new Set([503]), new Set([200])])
    await first.start()
    expect([await statuses(alone), await statuses(both)]).toEqual([new Set([200]), new Set([200])])
  })

  it('C8.4 refuses: its pages reach nobody, its statuses do as the contract says', async () => {
    const nginx = await startNginx(`
      client_max_body_size 1k;
      location ~ fund-detail { proxy_pass http://127.0.0.1:1; }
      location ~ fund-list { return 301 http://elsewhere.example/; }
      location ~ member-list { return 404; }`)
    const { ask } = await before([nginx.url])
    const told = [
      await ask({ target: DETAIL }),
      await ask(),
      await ask({ target: '/api/1.0/f/ACME/SUPER1/member-data/member-list' }),
      await ask({
        method: 'POST',
        target: DETAIL,
        headers: { 'Content-Type': 'application/json' },
        body: `{"Name":"x"${' '.repeat(2000)}}`,
      }),
    ]
    expect(told.map(({ status }) => status)).toEqual([503, 500, 404, 413])
    for (const { body, rawHeaders } of told)
      expect(body + JSON.stringify(rawHeaders)).not.toMatch(/nginx|<html|elsewhere/i)
  })
})

describe('C8.1 an upstream on a unix socket', () => {
  it('C8.2 gets the configured Host', async () => {
    const path = join(certificateFolder(), 'upstream.sock')
    const server = createHttpServer((request, response) => {
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(request.headers.host))
    }).listen(path)
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { ask } = await before([`unix:${path}`], { host: 'funds.internal' })
    expect((await ask()).body).toBe('{"Errors":[],"Data":{"Value":"funds.internal"}}')
  })

  it('C8.4 is 503 where nobody listens', async () => {
    const { ask } = await before([`unix:${join(certificateFolder(), 'nobody.sock')}`])
    expectFault(await ask(), 'upstream_unreachable')
  })
})

describe('C8.4 an upstream with TLS', () => {
  /** Counts what it was asked. */
  async function startTls({ certificate, key }: TestCertificate, options: ServerOptions = {}) {
    const asked: string[] = []
    const files = { cert: readFileSync(certificate), key: readFileSync(key) }
    const server = createServer({ ...files, ...options }, (request, response) => {
      asked.push(request.url ?? '')
      response.setHeader('Content-Type', 'application/json').end('{}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.close()
      server.closeAllConnections()
    })
    return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
  }

  const HERE = 'IP:127.0.0.1'
  const always = { verify: 'always' } as const

  it('C8.4 is served with an authority of one’s own', async () => {
    const authority = makeAuthority(certificateFolder())
    const { url, asked } = await startTls(authority.issue('upstream', HERE))
    const { ask } = await before([url], { tls: { ...always, ca: authority.certificate } })
    expect((await ask()).status).toBe(200)
    expect(asked).toEqual([LIST])
  })

  it('C8.4 is refused, and told nothing, whose certificate proves nothing, whatever the environment says', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const folder = certificateFolder()
    const authority = makeAuthority(folder)
    const ca = authority.certificate
    const cases = [
      ['another host', authority.issue('elsewhere', 'DNS:elsewhere.example,IP:192.0.2.1'), ca],
      ['expired', authority.issue('expired', HERE, -1), ca],
      ['self-signed', makeCertificate(folder, 'alone'), ca],
      ['of an authority that nobody named', authority.issue('unknown', HERE), undefined],
    ] as const
    for (const [what, certificate, trusted] of cases) {
      const { url, asked } = await startTls(certificate)
      const { ask } = await before([url], { tls: { ...always, ...(trusted && { ca: trusted }) } })
      const response = await ask()
      expectFault(response, 'upstream_unreachable')
      expect([what, asked]).toEqual([what, []])
    }
  })

  it('C8.4 bears the name that is configured, not that of the Host header', async () => {
    const authority = makeAuthority(certificateFolder())
    const { url } = await startTls(authority.issue('upstream', 'DNS:funds.internal'))
    const tls = { ...always, ca: authority.certificate }
    const named = await before([url], { tls: { ...tls, serverName: 'funds.internal' } })
    expect((await named.ask()).status).toBe(200)
    const hosted = await before([url], { tls, host: 'funds.internal' })
    expectFault(await hosted.ask(), 'upstream_unreachable')
  })

  it('C8.4 is shown a client certificate', async () => {
    const authority = makeAuthority(certificateFolder())
    const own = authority.issue('postern', 'DNS:postern.internal')
    const ca = authority.certificate
    const { url } = await startTls(authority.issue('upstream', HERE), {
      ca: readFileSync(ca),
      requestCert: true,
      rejectUnauthorized: true,
    })
    const shown = await before([url], { tls: { ...always, ca, cert: own.certificate, key: own.key } })
    expect((await shown.ask()).status).toBe(200)
    const hidden = await before([url], { tls: { ...always, ca } })
    expectFault(await hidden.ask(), 'upstream_unreachable')
  })

  it('T7 is believed without proof only where the configuration says off-insecure', async () => {
    const { url } = await startTls(makeCertificate(certificateFolder(), 'alone'))
    const { ask } = await before([url], { tls: { verify: 'off-insecure' } })
    expect((await ask()).status).toBe(200)
  })
})
