import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const config = (name: string): string => fileURLToPath(new URL(`../../../config/${name}`, import.meta.url))
const demo = readFileSync(config('demo.yaml'), 'utf8').replace('demo-data.json', config('demo-data.json'))

/**
 * What `check` says of a deployment with one backend `up`, whose `fund-list` (business) and `members/{memberId}` (fund)
 * are sent as told.
 */
async function check(
  {
    target = 'http://127.0.0.1:9',
    backend = '',
    list = '',
    member = '',
    area = '',
    method = 'GET',
    rule = '',
    other = '',
  },
  env: Record<string, string> = {},
): Promise<string[]> {
  const operation = (upstream: string): string => `scopes: { any: [fund.read] }, upstream: { ${upstream} }`
  const file = configFiles({
    'demo.yaml': demo,
    'a.yaml': [
      'extends: demo.yaml',
      'backends:',
      '  sample:',
      `  up: { kind: http, identity: headers, target: '${target}'${backend && `, ${backend}`} }`,
      `  other: { kind: http, identity: headers, target: 'http://127.0.0.1:9'${other && `, ${other}`} }`,
      `  memory: { kind: memory, data: ${config('demo-data.json')} }`,
      'areas:',
      `  fund-data: { backend: up${area && `, ${area}`} }`,
      '  member-data: { backend: up }',
      '  spare: { backend: other }',
      '  samples: { backend: memory }',
      'actions:',
      `  - { level: business, area: fund-data, action: fund-list, methods: { ${method}: { ${operation(list)}${rule} } } }`,
      `  - { level: fund, area: member-data, action: 'members/{memberId}', methods: { GET: { ${operation(member)} } } }`,
    ].join('\n'),
  })
  const text = reportText(await SETTINGS.check(file('a.yaml'), env))
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.includes('tell the business by that name'))
    .map((line) => line.replace(/^\S+ {2}/, ''))
}

const LIST = 'actions[0].methods.GET.upstream'

describe('C8.7 check of what upstreams are sent', () => {
  it.each([
    ['{business}', 'path', `path: {business}`],
    ['{business}/x', 'path', 'path: {business}/x'],
    ['{{business}}', 'path', 'path: {{business}}'],
    ['{business}{fund}', 'path', 'path: {business}{fund}'],
    ['{subject}', 'query.a', 'query: { a: {subject} }'],
    ['{subject}-{client}', 'headers.X-A', 'headers: { X-A: {subject}-{client} }'],
    ['{env}', 'headers.X-A', 'headers: { X-A: {env} }'],
    ['v{actionVersion}', 'headers.X-A', 'headers: { X-A: v{actionVersion} }'],
    ['a {client} b', 'query.a', 'query: { a: a {client} b, c: d }'],
    ['{client}', 'auth.bearer', 'auth: { bearer: {client} }'],
  ])('C8.7 %s without quotes is one problem at %s', async (_written, at, list) => {
    expect(await check({ list })).toEqual([
      expect.stringContaining(
        `${LIST}.${at}  has a "{" outside quotes, where a map begins in YAML — put it in quotes`,
      ),
    ])
  })

  it('C8.7 so it is in the section of a backend', async () => {
    for (const key of ['host', 'path'])
      expect(await check({ backend: `${key}: {business}` })).toEqual([
        expect.stringContaining(
          `backends.up.${key}  has a "{" outside quotes, where a map begins in YAML — put it in quotes`,
        ),
      ])
  })

  it('C8.7 finds nothing wrong with what suits', async () => {
    const backend = `path: '/{business}/{fund}/{action}', headers: { X-A: '{client}' }, query: { a: '{subject}' }`
    const member = `path: '/m/{memberId}.json', method: POST, timeouts: { idle: 1s }, queryOnly: [b], headers: { X-B: '{fund}' }`
    expect(await check({ backend, member, list: 'backend: other' })).toEqual([])
  })

  it.each([
    [
      `path: '/{busines}'`,
      `${LIST}.path  has {busines}, which fund-data/fund-list does not have — did you mean "business"?`,
    ],
    [`path: '/{fund}/x'`, `${LIST}.path  has {fund}, and fund-data/fund-list may be called without one`],
    [
      `query: { a: 'x{fund}' }`,
      `${LIST}.query.a  has {fund}, and fund-data/fund-list may be called without one`,
    ],
    [
      `headers: { X-A: '{memberId}' }`,
      `${LIST}.headers.X-A  has {memberId}, which fund-data/fund-list does not have`,
    ],
    [`headers: { X-A: '{' }`, `${LIST}.headers.X-A  has a "{" that belongs to no placeholder`],
    [`headers: { X-A: é }`, `${LIST}.headers.X-A  has a value with blanks at its ends, or with characters`],
    [`headers: { X-A: a, x_a: b }`, `${LIST}.headers.x_a  is the same header as one before it`],
    [`headers: { 'X A': a }`, 'is not a possible key here: expected a header’s name'],
    [
      `query: { '[]': a }`,
      `${LIST}.query["[]"]  is a name of nothing but white space, brackets, dots and the like, which services leave out`,
    ],
    [`query: { a: '{business}%20' }`, `${LIST}.query.a  holds an escape such as %20`],
    [`query: { a: b }, queryOnly: ['a[]']`, `${LIST}  lets "a[]" of the client pass`],
    [`path: /a?b`, `${LIST}.path  has characters that may not stand in a path as they are`],
    [
      `format: xml, xml: { dialect: plain }, data: /Funds/0`,
      `${LIST}.data  holds 0, which is no name of an XML element`,
    ],
    [
      `format: xml, xml: { dialect: plain }, data: /Funds/@id`,
      `${LIST}.data  holds @id, which is no name of an XML element`,
    ],
    [`method: HEAD`, `${LIST}.method  expected one of "GET", "POST"`],
    [
      `headers: { X-Key: a }, auth: { header: { name: x_key, value: { env: KEY } } }`,
      `${LIST}  sets the header x_key`,
    ],
  ])('C8.7 C8.8 tells %s', async (list, told) => {
    const lines = await check({ list }, { KEY: 'k' })
    expect(lines.join('\n')).toContain(told)
    expect(lines).toHaveLength(1)
  })

  it.each([
    ...['Host', 'Connection', 'Content-Length', 'transfer_encoding', 'TE', 'Trailer', 'Upgrade', 'Expect'],
    ...['Keep-Alive', 'Proxy-Authorization', 'X-Request-Id', 'traceparent', 'tracestate', 'Forwarded'],
    ...['X-Forwarded-For', 'X-Forwarded-Host', 'X_Forwarded_Proto', 'X-Forwarded-Port', 'X-Postern-Subject'],
    ...[
      'X.Postern.Anything',
      'Accept',
      'Accept-Encoding',
      'Content-Type',
      'Content-Encoding',
      'Authorization',
    ],
    ...['Sec-WebSocket-Key', 'Range', 'If-Range', 'If-None-Match', 'If-Modified-Since', 'Content-Range'],
  ])('C8.7 refuses the header %s', async (name) => {
    const [line, ...others] = await check({ list: `headers: { ${name}: a }` })
    expect(line).toContain('is a header that Postern makes itself')
    expect(others).toEqual([])
  })

  it.each([
    'X-Api-Key',
    'Accept-Language',
    'User-Agent',
    'Cookie',
    'X-Forwarded-User',
    'X-Consumer-Id',
    'SOAPAction',
  ])('C8.7 takes the header %s', async (name) => {
    expect(await check({ list: `headers: { ${name}: a }` })).toEqual([])
  })

  it('C8.7 a secret is no template, and is not shown', async () => {
    const list = `headers: { X-Key: { env: KEY } }, query: { key: { env: KEY } }`
    expect(await check({ list }, { KEY: '{nobody}{' })).toEqual([])
    const lines = await check({ list }, { KEY: 'gehéim' })
    expect(lines).toHaveLength(1)
    expect(lines.join()).not.toContain('geh')
  })

  it('C8.7 tells of a backend’s template once, with an action that it does not suit', async () => {
    const lines = await check({ backend: `path: '/{memberId}', headers: { X-A: '{nobody}' }` })
    expect(lines).toEqual([
      expect.stringContaining('backends.up.path  has {memberId}, which fund-data/fund-list does not have'),
      expect.stringContaining(
        'backends.up.headers.X-A  has {nobody}, which fund-data/fund-list does not have',
      ),
    ])
    expect(await check({ backend: `path: '/{memberId}'`, list: 'path: /list' })).toEqual([])
  })

  it('C8.7 GET is no method for an operation with a body', async () => {
    const sent = { method: 'POST', list: 'method: GET' }
    expect(await check(sent)).toEqual([])
    for (const rule of [', body: { required: true }', ', consumes: [text/csv]'])
      expect((await check({ ...sent, rule })).join()).toContain(
        'upstream.method  is GET, and the body of a GET',
      )
  })

  it('C8.7 {subject} and {client} are refused in a report-only area, for operations and its backend', async () => {
    const area = 'mode: report-only'
    for (const name of ['subject', 'client']) {
      const own = await check({ area, list: `query: { a: '{${name}}' }` })
      expect(own.join('\n')).toContain(
        `${LIST}.query.a  has {${name}}, and fund-data/fund-list is in a report-only area`,
      )
      const shared = await check({ area, backend: `headers: { X-A: '{${name}}' }` })
      expect(shared.join('\n')).toContain(`backends.up.headers.X-A  has {${name}}`)
    }
  })

  it('C8.7 a report-only area’s backend names nothing that a call without an action does not have', async () => {
    const told = async (backend: string) =>
      (await check({ area: 'mode: report-only', list: `path: '/{business}'`, backend })).filter(
        (line) => !line.includes('(warning)'),
      )
    expect((await told(`path: '/{memberId}'`)).join()).toContain(
      'a call of the area fund-data that matches no action',
    )
    expect(await told(`path: '/x/{business}/{fund}/{area}/{action}'`)).toEqual([])
    expect(await told(`path: '/x/{business}', query: { a: '{action}' }`)).toHaveLength(1)
    expect(await told(`path: '/x/{business}', query: { a: '{fund}' }`)).toHaveLength(1)
  })

  it('C8.7 a report-only area needs a service behind the backends that its operations name, too', async () => {
    const lines = await check({ area: 'mode: report-only', list: 'backend: memory' })
    expect(lines.join()).toContain('is report-only over a backend of kind memory')
  })
})

describe('C8.8 check of the origins that redirects lead to', () => {
  const redirects = "redirects: { max: 1, origins: ['https://a.example', 'http://b.example'] }"
  const warning =
    'origins[1]  is never gone to: no redirect is followed from https to http — name its https origin (warning)'
  const target = 'https://127.0.0.1:9'

  it('C8.8 tells an http origin beside https targets: of the backend and of an operation', async () => {
    expect(await check({ target, backend: redirects })).toEqual([`backends.up.redirects.${warning}`])
    expect(await check({ target, list: redirects })).toEqual([`${LIST}.redirects.${warning}`])
  })

  it('C8.8 finds nothing wrong with it beside an http target', async () => {
    expect(await check({ backend: redirects, list: redirects })).toEqual([])
    expect(await check({ target, list: `backend: other, ${redirects}` })).toEqual([])
  })

  it('C8.8 judges the paths that redirects may lead to as it judges `path`', async () => {
    const within = (paths: string): string => `redirects: { max: 1, within: [${paths}] }`
    expect(await check({ list: within("'/files/{business}', '/open'") })).toEqual([])
    expect(await check({ list: within("'/open', 'files'") })).toEqual([
      `${LIST}.redirects.within[1]  must begin with "/"`,
    ])
    const unknown = /redirects\.within\[0\] {2}has \{nobody\}, which fund-data\/fund-list does not have/
    expect((await check({ list: within("'/{nobody}'") })).join()).toMatch(unknown)
    expect((await check({ backend: within("'/{nobody}'") })).join()).toMatch(unknown)
  })

  it('C8.8 refuses an origin with a path or a query', async () => {
    for (const origin of ['https://a.example/x', 'https://a.example?x'])
      expect(await check({ list: `redirects: { max: 1, origins: ['${origin}'] }` })).toEqual([
        `${LIST}.redirects.origins[0]  expected scheme, host and port alone, without a path`,
      ])
  })
})

it('C8.7 warns of credentials of a backend that only an operation of a report-only area names', async () => {
  const other = 'auth: { bearer: { env: KEY } }'
  const warnings = async (area: string) =>
    (await check({ list: 'backend: other', area, other }, { KEY: 'abcdefgh' })).filter((line) =>
      line.startsWith('backends.other.auth'),
    )
  expect(await warnings('mode: report-only')).toEqual([
    expect.stringContaining('goes with all calls of the area fund-data, which is report-only'),
  ])
  expect(await warnings('')).toEqual([])
})
