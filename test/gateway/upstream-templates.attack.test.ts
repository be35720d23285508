import { SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { attackUpstream, bytesOf, type AttackedUpstream } from '../support/attacked.ts'
import { AUDIENCE, ISSUER, makeIssuerKey, startForeignIssuer } from '../support/foreign-issuer.ts'
import { HOSTILE } from '../support/hostile-segments.ts'
import { sendRaw } from '../support/raw-http.ts'
import { startPostern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'

/** T2.10: what values are made to say in paths, queries and headers of upstream requests. */

type Methods = Configuration['actions'][number]['methods']
type Upstream = NonNullable<NonNullable<Methods['GET']>['upstream']>

/** An action with a parameter for each place where a value may be put. */
const shaped = (action: string, upstream: Upstream): Configuration['actions'][number] => ({
  level: 'business',
  area: 'fund-data',
  action,
  methods: { GET: { scopes: { any: ['fund.read'] }, versions: [1], items: {}, upstream } },
})

const ACTIONS = [
  shaped('whole/{one}', { path: '/t/{business}/{one}' }),
  shaped('part/{one}', { path: '/t-{business}/x{one}.json' }),
  shaped('before-hex/{one}', { path: '/t/{one}2f' }),
  shaped('query/{one}', { path: '/q', query: { tenant: '{business}', one: '{one}', text: 'a&{one}2f' } }),
  shaped('header/{one}', { path: '/h', headers: { 'X-Tenant': '{business}', 'X-One': '<{one}>' } }),
  shaped('tenant', { path: '/q', query: { business: '{business}' } }),
  shaped('tenant-of/{one}', { path: '/q', query: { business: '{business}', one: '{one}', text: 'x-{one}' } }),
  shaped('strict', { path: '/q', strictQuery: true }),
  shaped('listed', { path: '/q', query: { business: '{business}' }, queryOnly: ['q'] }),
  shaped('quoted/{one}', { path: "/Orders(No='{one}',Of='{business}')/lines" }),
  shaped('quoted-folder/{one}', { path: "/Folder('{business}/in/{one}/all')" }),
  shaped('quoted-query/{one}', { path: '/q', query: { filter: 'No eq "{one}"' } }),
  shaped('quoted-header/{one}', { path: '/h', headers: { 'X-Filter': `"No='{one}'"` } }),
  shaped('unquoted/{one}', { path: '/Orders({one})/lines' }),
  shaped('unquoted-query/{one}', { path: '/q', query: { filter: 'No eq {one}' } }),
  shaped('unquoted-header/{one}', { path: '/h', headers: { 'X-Filter': 'No=={one};Open==1' } }),
  shaped('between-quotes/{one}', { path: '/q', query: { filter: "A eq 'x' or No eq {one} or B eq 'y'" } }),
  shaped('never-closed/{one}', { path: '/q', query: { filter: "it's {one}" } }),
  shaped('beside-quotes/{one}', { path: "/people/{one}/Orders(Of='{business}')" }),
]

let attacked: AttackedUpstream
beforeAll(async () => {
  attacked = await attackUpstream({
    change: (loaded) => ({ ...loaded, actions: [...loaded.actions, ...ACTIONS] }),
  })
})
afterAll(() => attacked.close())
beforeEach(() => attacked.forget())

const BASE = '/api/1.0/b/ACME/fund-data'

const answerTo = (target: string, lines = '') =>
  sendRaw(attacked.port, bytesOf({ target: `${BASE}/${target}`, lines: attacked.authorization + lines }))

const call = async (target: string, lines = ''): Promise<number> => (await answerTo(target, lines)).status

const PLACES = ['whole', 'part', 'before-hex', 'query', 'header']

describe('T2.10 a hostile path parameter', () => {
  it.each(HOSTILE)('C3.4 C8.7 %s reaches the upstream by no template, query or header', async (hostile) => {
    for (const place of PLACES)
      for (const value of [hostile, `x${hostile}y`]) {
        if (/^x(?:\.|%2e)+y$/i.test(value)) continue // a legal name
        expect([place, value, await call(`${place}/${value}`)]).toEqual([place, value, 400])
      }
    expect(attacked.received()).toEqual([])
  })
})

describe('T2.10 a legal parameter that means something elsewhere', () => {
  const odd = [
    'a?b',
    'a#b',
    'a&b=c',
    'a=b',
    '100%',
    'a%zz',
    'a b',
    'a+b',
    "'()*!",
    '"<>[]^{|}`',
    '日本',
    '...',
  ]

  it.each(odd)(
    'C8.7 %s is one segment, or one value of the query: decoding it once gives it back',
    async (value) => {
      const sent = encodeURIComponent(value)
      expect(await call(`whole/${sent}`)).toBe(200)
      expect(await call(`part/${sent}`)).toBe(200)
      const [whole, part] = attacked.received().map(({ target }) => target.split('/'))
      expect([whole?.length, part?.length]).toEqual([4, 3])
      expect(decodeURIComponent(whole?.[3] ?? '')).toBe(value)
      expect(decodeURIComponent(part?.[2] ?? '')).toBe(`x${value}.json`)
      expect(whole?.[3]).toMatch(/^[A-Za-z0-9._~%-]+$/)
    },
  )

  it.each(odd.filter((value) => !value.endsWith('%')))('C8.7 %s is one value of the query', async (value) => {
    expect(await call(`query/${encodeURIComponent(value)}`)).toBe(200)
    const [request] = attacked.received()
    expect([...new URLSearchParams(request?.target.split('?')[1])]).toEqual([
      ['tenant', 'ACME'],
      ['one', value],
      ['text', `a&${value}2f`],
    ])
  })

  it('C8.7 what is no visible ASCII is in no header: 400, and the upstream gets nothing', async () => {
    expect(await call('header/a%3Fb%23')).toBe(200)
    expect(attacked.received()[0]?.headers).toMatchObject({ 'x-tenant': ['ACME'], 'x-one': ['<a?b#>'] })
    attacked.forget()
    for (const value of ['a%20b', '%C3%A9', '%E2%80%A8', 'a%C2%A0'])
      expect([value, await call(`header/${value}`)]).toEqual([value, 400])
    expect(attacked.received()).toEqual([])
  })

  it('C8.7 a value that the text beside it makes an escape of is not sent', async () => {
    for (const place of ['before-hex', 'query'])
      expect([place, await call(`${place}/a%25`)]).toEqual([place, 400])
    expect(await call('before-hex/a%252')).toBe(400)
    expect(attacked.received()).toEqual([])
    const [line] = attacked.gateway.log().filter(({ reason }) => reason === 'unsendable_argument')
    expect(line).toMatchObject({ status: 400, level: 'info' })
  })
})

describe('T2.10 a client that sends the tenant’s name itself', () => {
  it.each([
    'business=GLOBEX',
    'Business=GLOBEX',
    'b%75siness=GLOBEX',
    'b%2575siness=GLOBEX',
    'business[]=GLOBEX',
    'business%5B0%5D=GLOBEX',
    'business.x=GLOBEX',
    '+business=GLOBEX',
    'business%00=GLOBEX',
    'business%00x=GLOBEX',
    '[business]=GLOBEX',
    '?business=GLOBEX',
    '%3Fbusiness=GLOBEX',
    'business',
  ])('C8.7 %s never arrives; the rest does, byte for byte, and ours at the end', async (pair) => {
    for (const query of [`a=%2f;${pair}&b`, `${pair};a=%2f&b`, `a=%2f&b&${pair}`])
      expect([query, await call(`tenant?${query}`)]).toEqual([query, 200])
    for (const { target } of attacked.received()) expect(target).toMatch(/^\/q\?a=%2f[;&]b&business=ACME$/)
  })
})

/** `business=GLOBEX` behind a separator, as services see it that decode again, or before they split, or normalise. */
const HIDDEN = [
  'q=1%26business%3DGLOBEX',
  'q=1%2526business%253DGLOBEX',
  'q=1%252526business%25253DGLOBEX',
  'q=1%3Bbusiness%3DGLOBEX',
  'q=1%26b%75siness%3DGLOBEX',
  'q=1%26BUSINESS%5B%5D%3DGLOBEX',
  'q=1%26%20business=GLOBEX',
  'q=1%26x%26business%3d',
  'q=1%u0026business%u003DGLOBEX',
  'q=1%EF%BC%86business%EF%BC%9DGLOBEX',
  'q=1%26b%EF%BD%95siness=GLOBEX',
  'q=1%CD%BEbusiness=GLOBEX',
  'q=1%25EF%25BC%2586business%25EF%25BC%259DGLOBEX',
  'q=1%EF%BC%8526business%EF%BC%853DGLOBEX',
  'business%3DGLOBEX',
  '%62usiness%3DGLOBEX&q=1',
  'b%252575siness=GLOBEX',
  'b%252575siness',
  'b%EF%BD%95siness=GLOBEX',
  '%F0%9D%90%9Fund=1&b%F0%9D%90%AEsiness=GLOBEX',
]

describe('T2.10 a client that hides the tenant’s name from one reader of the query', () => {
  it.each(HIDDEN)('C8.7 %s is 400, and nothing is sent', async (pair) => {
    for (const query of [pair, `a=1&${pair}`, `${pair};b=2`])
      expect([query, await call(`tenant?${query}`)]).toEqual([query, 400])
    expect(attacked.received()).toEqual([])
  })

  it.each([
    'q=100%25',
    'q=100%2525',
    'q=R%26D',
    'q=sport%26business',
    'q=tax%3B%20business%20law',
    'q=business',
    'q=a%3Db',
    'q=%EF%BC%86',
    'q=%zz%FF%00',
    'q=a+b%2Bc&business2%3D=1',
    'url=https%3A%2F%2Fx.example%2F%3Fa%3D1%26b%3D2',
  ])('C8.7 %s passes, byte for byte', async (query) => {
    expect(await call(`tenant?${query}`)).toBe(200)
    expect(attacked.received().map(({ target }) => target)).toEqual([`/q?${query}&business=ACME`])
  })

  it('C8.7 a path parameter hides no name in the query that it is put into', async () => {
    for (const value of ['1%26business%3DGLOBEX', '1&business=GLOBEX', '1%EF%BC%86business=GLOBEX'])
      expect([value, await call(`tenant-of/${value}`)]).toEqual([value, 400])
    // The text before it ends in a separator there.
    expect(await call('query/tenant=GLOBEX')).toBe(400)
    expect(attacked.received()).toEqual([])
    for (const value of ['R%26D=1', 'business=1', 'business'])
      expect([value, await call(`tenant-of/${value}`)]).toEqual([value, 200])
  })

  it('C8.7 with queryOnly too; of what is taken out nothing is judged', async () => {
    expect(await call('listed?q=1%26business%3DGLOBEX')).toBe(400)
    expect(attacked.received()).toEqual([])
    expect(await call('listed?q=1&x=1%26business%3DGLOBEX')).toBe(200)
    expect(attacked.received()[0]?.target).toBe('/q?q=1&business=ACME')
  })

  it('C8.7 strictQuery refuses what decodes twice, and nothing else', async () => {
    for (const query of ['q=100%2525', 'q%2541=1', 'a=1&q=%2575', 'q=%25u0041'])
      expect([query, await call(`strict?${query}`)]).toEqual([query, 400])
    expect(attacked.received()).toEqual([])
    for (const query of ['q=100%25', 'q=%2B49+1', 'q=a%26other%3Db', '', '&&', 'q=%25zz'])
      expect([query, await call(`strict?${query}`)]).toEqual([query, 200])
    expect(attacked.received().map(({ target }) => target)).toContain('/q?q=100%25')
  })

  it('C2.6 the answer says what to do, and repeats nothing', async () => {
    const { body } = await answerTo('tenant?q=1%26business%3DGLOBEX')
    expect(body).toContain(
      'It holds, encoded, a parameter of the query that only this service sets. Leave it out.',
    )
    expect(body).not.toMatch(/GLOBEX|business/)
    const lines = attacked.gateway.log().filter(({ reason }) => reason === 'unsendable_argument')
    expect(lines.at(-1)).toMatchObject({ status: 400, level: 'info' })
    expect(JSON.stringify(lines.at(-1))).not.toContain('GLOBEX')
  })
})

describe('T2.10 a value that ends the quotation in which it stands', () => {
  it.each([
    ["quoted/1')%20or%20('1'='1", 400],
    ['quoted/1%27%29%20or%20%28%271%27%3D%271', 400],
    ['quoted/a%27', 400],
    ['quoted/a%EF%BC%87', 400],
    ['quoted/a%EF%BC%BC', 400],
    ["quoted-folder/x'", 400],
    ['quoted-query/1%22%20or%20%221%22%20eq%20%221', 400],
    ['quoted-query/1%EF%BC%82', 400],
    ['quoted-header/1%27', 400],
    ['quoted-header/1%22', 400],
  ])('C8.7 %s is %i, and nothing is sent', async (target, status) => {
    expect(await call(target)).toBe(status)
    expect(attacked.received()).toEqual([])
  })

  it('C8.7 any other value is sent, and a quotation mark of another kind, or outside', async () => {
    for (const target of [
      'quoted/A-1',
      'quoted/1%22)%20or%20(%22',
      'quoted-query/1%27',
      'quoted-header/1(2)',
      'beside-quotes/O%27Brien',
      'whole/O%27Brien',
    ])
      expect([target, await call(target)]).toEqual([target, 200])
    expect(attacked.received().map(({ target }) => target)).toEqual([
      "/Orders(No='A-1',Of='ACME')/lines",
      "/Orders(No='1%22%29%20or%20%28%22',Of='ACME')/lines",
      '/q?filter=No%20eq%20%221%27%22',
      '/h',
      "/people/O%27Brien/Orders(Of='ACME')",
      '/t/ACME/O%27Brien',
    ])
  })

  it.each([
    '1)%20or%20(1',
    '1,2',
    '1=1',
    'a%20b',
    "1'",
    '1%22',
    '1%5C',
    'x(y',
    '1%EF%BC%89',
    '%E2%80%83',
    '%C3%A9',
    'a%2Bb',
  ])(
    'C8.7 %s outside quotation marks, in a text that such characters divide, is 400, and nothing is sent',
    async (value) => {
      for (const place of ['unquoted', 'unquoted-query', 'unquoted-header', 'between-quotes', 'never-closed'])
        expect([place, await call(`${place}/${value}`)]).toEqual([place, 400])
      expect(attacked.received()).toEqual([])
    },
  )

  it('C8.7 letters, digits, ".", "_", "~" and "-" are sent there', async () => {
    for (const place of ['unquoted', 'unquoted-query', 'unquoted-header', 'between-quotes', 'never-closed'])
      expect([place, await call(`${place}/A.b_1~-`)]).toEqual([place, 200])
    expect(attacked.received().map(({ target }) => decodeURIComponent(target))).toEqual([
      '/Orders(A.b_1~-)/lines',
      '/q?filter=No eq A.b_1~-',
      '/h',
      "/q?filter=A eq 'x' or No eq A.b_1~- or B eq 'y'",
      "/q?filter=it's A.b_1~-",
    ])
    expect(attacked.received()[2]?.headers['x-filter']).toEqual(['No==A.b_1~-;Open==1'])
  })

  it('C2.6 the answer names the parameter', async () => {
    const { body } = await answerTo('quoted/a%27')
    expect(body).toContain('The value of one holds a quotation mark or a backslash, and cannot be passed on.')
  })
})

describe('T2.10 a client that sends a configured header itself', () => {
  it.each(['X-Tenant', 'x-tenant', 'X_Tenant', 'X.Tenant', 'x_tenant'])(
    'C8.7 %s of the client never arrives',
    async (name) => {
      expect(await call('header/one', `${name}: GLOBEX\r\nX-One: GLOBEX\r\nX-Other: kept\r\n`)).toBe(200)
      const [request] = attacked.received()
      expect(request?.head).not.toContain('GLOBEX')
      expect(request?.headers).toMatchObject({
        'x-tenant': ['ACME'],
        'x-one': ['<one>'],
        'x-other': ['kept'],
      })
    },
  )
})

describe('T2.10 a caller whose name is hostile', () => {
  const decoded = HOSTILE.flatMap((hostile) => {
    try {
      return [hostile, decodeURIComponent(hostile)]
    } catch {
      return []
    }
  })
  // These are segments as they stand: they are encoded, and decoding once gives them back.
  const legal = /^(?:#|%|%2|%zz|%u002f(?!.)|#\/\.\.)$/

  it('C8.7 reaches the upstream by no template, query or header: 500', async () => {
    const key = await makeIssuerKey('one')
    const upstream = await startUpstream()
    const issuer = await startForeignIssuer([key.jwk])
    const sidecar = await startPostern({
      keeps: 'nothing',
      config: 'sidecar.yaml',
      environment: { UPSTREAM_URL: upstream.url, ISSUER, ISSUER_JWKS: issuer.url, AUDIENCE },
      change: (loaded) => ({
        ...loaded,
        backends: Object.fromEntries(
          Object.entries(loaded.backends).map(([name, backend]) => [
            name,
            backend.kind === 'http' ? { ...backend, identity: 'none' } : backend,
          ]),
        ),
        actions: [
          ...loaded.actions,
          shaped('in-path', { path: '/b/{business}/{subject}' }),
          shaped('in-query', { path: '/b/{business}', query: { who: '{subject}' } }),
          shaped('in-header', { path: '/b/{business}', headers: { 'X-Who': '{subject}' } }),
        ],
      }),
    })
    onTestFinished(async () => {
      await sidecar.close()
    })
    const ask = async (action: string, subject: string): Promise<number> => {
      const token = await new SignJWT({ client_id: 'app', scope: 'fund.read target:b/ACME', jti: subject })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'one' })
        .setIssuer(ISSUER)
        .setSubject(subject)
        .setAudience(AUDIENCE)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(key.privateKey)
      const lines = `Authorization: Bearer ${token}\r\n`
      return (await sendRaw(sidecar.port, bytesOf({ target: `${BASE}/${action}`, lines }))).status
    }
    for (const subject of new Set(decoded.filter((each) => !legal.test(each))))
      for (const action of ['in-path', 'in-query', 'in-header'])
        expect([action, subject, [401, 500].includes(await ask(action, subject))]).toEqual([
          action,
          subject,
          true,
        ])
    expect(upstream.requests).toEqual([])
    expect(await ask('in-path', 'auth0|123')).toBe(200)
    expect(upstream.requests[0]?.target).toBe('/b/ACME/auth0%7C123')
  })
})
