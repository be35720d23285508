import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { DESCRIPTION, lint, readDescription } from '../support/openapi.ts'
import { ROOT } from '../support/program.ts'
import { SHIPPED } from '../support/shipped.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'

/** Puts a configuration in force in the service of these tests. */
const replaced = replacedService({ keeps: 'nothing' })
let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
})
afterAll(() => gateway.close())

const APP = 'https://app.example.com'

const withCors = (loaded: Configuration): Configuration => ({
  ...loaded,
  server: {
    ...loaded.server,
    cors: { origins: [APP], methods: ['GET'], headers: [], exposeHeaders: [], maxAge: 0 },
  },
})

describe('C11.3.8 the document', () => {
  it('C11.3.8 is public, and answers GET and HEAD alike', async () => {
    const got = await send(gateway, { target: DESCRIPTION })
    expect(got.status).toBe(200)
    expect(got.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'public, max-age=300',
    })
    const { status, headers, body } = await send(gateway, { method: 'HEAD', target: DESCRIPTION })
    expect({ status, body, etag: headers['etag'], length: headers['content-length'] }).toEqual({
      status: 200,
      body: '',
      etag: got.headers['etag'],
      length: String(Buffer.byteLength(got.body)),
    })
  })

  it('C11.3.8 is not sent to a client that has it', async () => {
    const { headers } = await send(gateway, { target: DESCRIPTION })
    const etag = String(headers['etag'])
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    const again = await send(gateway, { target: DESCRIPTION, headers: { 'If-None-Match': etag } })
    expect({ ...again, headers: again.headers['etag'] }).toMatchObject({
      status: 304,
      body: '',
      headers: etag,
    })
    const other = await send(gateway, { target: DESCRIPTION, headers: { 'If-None-Match': '"other"' } })
    expect(other.status).toBe(200)
  })

  it('C11.3.8 refuses other methods, and names those that there are', async () => {
    for (const method of ['POST', 'OPTIONS', 'DELETE']) {
      const refused = await send(gateway, { method, target: DESCRIPTION })
      expectFault(refused, 'method_not_allowed')
      expect(refused.headers['allow']).toBe('GET, HEAD')
    }
  })

  it('C11.3.8 may be read by pages of the origins that may call the API', async () => {
    const open = await replaced({ change: withCors })
    const asked = await send(open, {
      method: 'OPTIONS',
      target: DESCRIPTION,
      headers: { Origin: APP, 'Access-Control-Request-Method': 'GET' },
    })
    expect(asked.status).toBe(204)
    expect(asked.headers['access-control-allow-origin']).toBe(APP)
    const read = await send(open, { target: DESCRIPTION, headers: { Origin: APP } })
    expect(read.headers['access-control-allow-origin']).toBe(APP)
  })

  it('C11.3.8 is answered while the service is under maintenance', async () => {
    const closed = await postern({ keeps: 'nothing' })
    closed.switches.set([{ scope: { kind: 'service' } }])
    expect((await send(closed, { target: DESCRIPTION })).status).toBe(200)
    expectFault(await send(closed, { target: '/api/1.0/b/ACME/fund-data/fund-list' }), 'service_maintenance')
  })

  it('C11.3.8 is not there where it is off', async () => {
    const off = await replaced({ change: (loaded) => ({ ...loaded, openapi: 'off' }) })
    expectFault(await send(off, { target: DESCRIPTION }), 'outside')
  })

  it('C11.3.8 is that of the configuration in force', async () => {
    const changed = await replaced()
    const before = await send(changed, { target: DESCRIPTION })
    const { configuration } = changed
    await changed.worker!.prepare({ ...configuration, openapi: { title: 'Funds' } })
    expect((await send(changed, { target: DESCRIPTION })).body).toBe(before.body)
    await changed.worker!.commit()
    const { info } = await readDescription(changed)
    expect(info['title']).toBe('Funds')
  })

  it('C11.3 lets nobody pass below /api who has no token', async () => {
    expectFault(await send(gateway, { target: '/api/.well-known/openapi.json' }), 'unknown_api_version')
    expectFault(
      await send(gateway, { target: '/api/1.0/.well-known/openapi.json', headers: bearer('x') }),
      'invalid_token',
    )
  })
})

describe.each(SHIPPED)('C11.3 the document of %s, which is shipped', (config, environment) => {
  let shipped: StartedPostern
  beforeAll(async () => {
    // What an example's module reads of the environment of its process.
    process.env['FUNDS_SIGNING_KEY'] = 'a key of the tests'
    const open = config === 'sidecar.yaml' ? startPostern : replaced
    shipped = await open({ config, environment })
  })
  afterAll(async () => {
    if (config === 'sidecar.yaml') await shipped.close()
    Reflect.deleteProperty(process.env, 'FUNDS_SIGNING_KEY')
  })

  it('C11.3 has nothing that linters find wrong', async () => {
    expect(await lint(await readDescription(shipped))).toEqual([])
  })

  it('C11.3.6 names no backend and no address behind it', async () => {
    const { body } = await send(shipped, { target: DESCRIPTION })
    const names = Object.keys(shipped.configuration.backends).map((name) => `"${name}"`)
    for (const secret of [...names, ...Object.values(environment), '127.0.0.1:1/'])
      expect(body).not.toContain(secret)
  })
})

/** What decides over the document, of a configuration that stands in a manifest or needs what a cluster has. */
const DESCRIBING = ['vendor', 'issuers', 'scopes', 'directory', 'backends', 'areas', 'actions'] as const

describe('C11.3 the documents of deploy/kubernetes', () => {
  it.each(['standalone.yaml', 'sidecar.yaml', 'nodes/configuration/postern.yaml'])(
    'C11.3 linters find nothing wrong with that of %s',
    async (name) => {
      const documents = parseAllDocuments(readFileSync(join(ROOT, 'deploy/kubernetes', name), 'utf8'))
      const [first] = documents.map((each) => each.toJS() as Readonly<Record<string, unknown>>)
      const { 'postern.yaml': within } = (first?.['data'] ?? {}) as Readonly<Record<string, string>>
      const written = within === undefined ? first : (parse(within) as typeof first)
      const folder = mkdtempSync(join(tmpdir(), 'postern-deployed-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      const file = join(folder, 'postern.yaml')
      const own = DESCRIBING.flatMap((key) => (written?.[key] === undefined ? [] : [[key, written[key]]]))
      const places = {
        server: { listen: '127.0.0.1:0' },
        admin: { listen: '127.0.0.1:0' },
        data: folder,
      }
      writeFileSync(file, JSON.stringify({ ...places, ...Object.fromEntries(own) }))
      expect(await lint(await readDescription(await postern({ file, keeps: 'nothing' })))).toEqual([])
    },
  )
})

describe('C11.3 the document of a sidecar', () => {
  it('C11.3.6 that of a sidecar tells the address of its issuer, where clients get their tokens', async () => {
    const environment = { ISSUER: 'https://issuer.example', UPSTREAM_URL: 'http://127.0.0.1:1' }
    const sidecar = await postern({ keeps: 'nothing', config: 'sidecar.yaml', environment })
    const { components } = await readDescription(sidecar)
    expect(components['securitySchemes']).toEqual({
      issuer: {
        ...{ type: 'http', scheme: 'bearer' },
        description: expect.stringContaining('Access tokens of https://issuer.example.'),
      },
    })
  })
})
