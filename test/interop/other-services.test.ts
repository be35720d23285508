import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KINDS, OWN, startOtherServices, type OtherServices } from '../support/other-services.ts'
import { bearer, send } from '../support/requests.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

/** Services of other kinds behind one file without code: test/support/other-services.yaml. */

const TENANTS = { ACME: 't-7', GLOBEX: 't-9' } as const
type Business = keyof typeof TENANTS

/** What ends a text, begins a tag, a placeholder or an expression somewhere. */
const HOSTILE = '"]]></x>\'\n{{business}} {business.tenant} ${HOME} &amp; \\ t-9 \u{1F600}'
/** The same without what no value of a path or query may hold (C8.7), and without marks of quotation. */
const HARMLESS = ']]><x>{{business}} {business.tenant} ${HOME} &tenant=t-9 \u{1F600}'
const PLAIN = 'A-1.b_c~d'

/** How a client says a text to a service of this kind. */
interface Way {
  readonly area?: string
  /** Where the text goes: a body takes any, a path or query what C8.7 lets pass. */
  readonly takes: 'any' | 'harmless' | 'nothing'
  readonly call: (said: string) => {
    readonly method: string
    readonly action: string
    readonly body?: unknown
  }
  readonly type?: string
  /** What the client's answer has in `Data`. */
  readonly data: (own: string) => unknown
}

const note = (action: string) => (said: string) => ({ method: 'POST', action, body: { Note: said } })
const asked = (action: string) => (said: string) => ({
  method: 'GET',
  action: `${action}?name=${encodeURIComponent(said)}`,
})
const named = (action: string) => (said: string) => ({
  method: 'GET',
  action: `${action}/${encodeURIComponent(said)}`,
})
const only = (action: string) => () => ({ method: 'GET', action })
const items = (item: (own: string) => unknown) => (own: string) => ({ Items: [item(own)] })

const WAYS: Readonly<Record<string, Way>> = {
  'xml-rpc': { area: 'xml', takes: 'any', call: note('xml-rpc'), data: (own) => ({ string: own }) },
  sparql: {
    takes: 'harmless',
    call: asked('sparql'),
    data: items((value) => ({ n: { type: 'literal', value } })),
  },
  fhir: {
    takes: 'any',
    type: 'application/fhir+json',
    call: (said) => ({
      method: 'PUT',
      action: 'fhir/1',
      body: {
        text: said,
        managingOrganization: { reference: 'Organization/t-9', Reference: 'Organization/t-9' },
      },
    }),
    data: (family) => ({ resourceType: 'Patient', name: [{ family }] }),
  },
  'fhir by id': {
    takes: 'harmless',
    call: named('fhir'),
    data: (family) => ({ resourceType: 'Patient', name: [{ family }] }),
  },
  soql: { takes: 'harmless', call: asked('soql'), data: items((Id) => ({ Id })) },
  odoo: { takes: 'any', call: note('odoo'), data: items((name) => ({ name })) },
  'odata-v2': { takes: 'harmless', call: named('odata-v2'), data: (Name) => ({ __metadata: {}, Name }) },
  influx: { takes: 'harmless', call: asked('influx'), data: items((own) => [1, own]) },
  solr: { takes: 'harmless', call: asked('solr'), data: items((name) => ({ name })) },
  hal: { takes: 'nothing', call: only('hal'), data: items((name) => ({ name })) },
  'json-api': {
    takes: 'any',
    type: 'application/vnd.api+json; charset=utf-8',
    call: (said) => ({
      method: 'POST',
      action: 'json-api',
      body: {
        data: {
          type: 'orders',
          attributes: { note: said },
          relationships: { company: { data: { type: 'companies', id: 't-9', ID: 't-9' } } },
        },
      },
    }),
    data: (name) => ({ name }),
  },
  scim: {
    takes: 'any',
    type: 'application/scim+json',
    call: (said) => ({
      method: 'POST',
      action: 'scim',
      body: {
        displayName: said,
        'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User': {
          organization: 't-9',
          Organization: 't-9',
        },
      },
    }),
    data: (displayName) => ({ id: '1', displayName }),
  },
  'by-header': { area: 'by-header', takes: 'any', call: note('orders'), data: (name) => ({ name }) },
  webdav: {
    area: 'xml',
    takes: 'harmless',
    call: named('webdav'),
    data: (displayname) => ({ href: '/x', propstat: { prop: { displayname }, status: 'HTTP/1.1 200 OK' } }),
  },
  atom: { area: 'xml', takes: 'harmless', call: asked('atom'), data: (title) => ({ title }) },
  csv: { takes: 'nothing', call: only('csv'), data: (own) => ({ Value: `No,Name\r\n1,"${own}"\r\n` }) },
  'by-host': { area: 'by-host', takes: 'any', call: note('orders'), data: (name) => ({ name }) },
  arangodb: { takes: 'any', call: note('arangodb'), data: items((name) => ({ name })) },
  stripe: { takes: 'any', call: note('stripe'), data: (name) => ({ name }) },
  transcoded: { takes: 'any', call: note('transcoded'), data: (name) => ({ name }) },
}

describe('services of other kinds, by a file and no code', () => {
  let services: OtherServices
  let gateway: StartedPostern
  const tokens = new Map<Business, string>()

  beforeAll(async () => {
    services = await startOtherServices()
    gateway = await startPostern({
      file: join(ROOT, 'test/support/other-services.yaml'),
      environment: {
        SERVICES_URL: services.url,
        KEY_OF_ACME: 'key of t-7',
        KEY_OF_GLOBEX: 'key of t-9',
      },
    })
    for (const business of ['ACME', 'GLOBEX'] as const) {
      const { access_token } = await issueToken(gateway, { scope: `fund.read target:b/${business}` })
      tokens.set(business, access_token)
    }
  })
  afterAll(async () => {
    await gateway.close()
    await services.stop()
  })

  async function ask(business: Business, { area = 'json', call, type }: Way, said: string) {
    const { method, action, body } = call(said)
    const before = services.understood.length
    const { status, body: text } = await send(gateway, {
      method,
      target: `/api/1.0/b/${business}/${area}/${action}`,
      headers: {
        ...bearer(tokens.get(business) ?? ''),
        // What services of these kinds may believe.
        ...{
          'X-Tenant-ID': 't-9',
          'X-Tenant-Id': 't-9',
          X_Tenant_ID: 't-9',
          'X-Forwarded-Host': 't-9.app.internal',
        },
        ...(body !== undefined && { 'Content-Type': type ?? 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status, answer: JSON.parse(text), understood: services.understood.slice(before) }
  }

  it('are all called', () => {
    const called = new Set(Object.keys(WAYS).map((name) => name.split(' ')[0]))
    expect([...called].sort()).toEqual(Object.keys(KINDS).sort())
    expect(called.size).toBeGreaterThanOrEqual(17)
  })

  describe.each(Object.entries(WAYS))('%s', (name, way) => {
    const kind = name.split(' ')[0]

    it.each(['ACME', 'GLOBEX'] as const)(
      'C8.7 gets %s’s own tenant, and its own data come back',
      async (business) => {
        const { status, answer, understood } = await ask(business, way, PLAIN)
        const tenant = TENANTS[business]
        expect(answer).toEqual({ Errors: [], Data: way.data(OWN[tenant] ?? '') })
        expect(status).toBe(200)
        expect(understood).toMatchObject([
          { kind, tenant, said: way.takes === 'nothing' ? undefined : PLAIN },
        ])
      },
    )

    if (way.takes === 'any')
      it('C8.7 gets a hostile text as data', async () => {
        const { answer, understood } = await ask('ACME', way, HOSTILE)
        expect(answer).toEqual({ Errors: [], Data: way.data('Harbour') })
        expect(understood).toMatchObject([{ kind, tenant: 't-7', said: HOSTILE }])
      })

    if (way.takes === 'harmless')
      it('C8.7 gets a hostile text as data, or nothing where it could be more', async () => {
        const { answer, understood } = await ask('ACME', way, HARMLESS)
        expect(answer).toEqual({ Errors: [], Data: way.data('Harbour') })
        expect(understood).toMatchObject([{ kind, tenant: 't-7', said: HARMLESS }])
        const { status, understood: none } = await ask('ACME', way, HOSTILE)
        expect({ status, none }).toEqual({ status: 400, none: [] })
      })
  })
})
