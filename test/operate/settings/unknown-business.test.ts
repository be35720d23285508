import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { readPage, recipeNames } from '../../support/recipes/page.ts'
import { SETTINGS } from '../../support/settings.ts'

const demo = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

interface Given {
  /** Of the backend `up`. */
  readonly backend?: string
  /** What the GET and the POST of fund-list say of their upstream. */
  readonly get?: string
  readonly post?: string
  /** In place of the backend `up`. */
  readonly backends?: string
  readonly area?: string
  readonly more?: string
}

const written = ({ backend = '', get = '', post = '', backends, area = '', more = '' }: Given) => {
  const operation = (upstream: string): string =>
    `{ scopes: { any: [fund.read] }, upstream: { ${upstream} } }`
  return configFiles({
    'around.mjs': 'export default () => ({ request: () => ({}) })',
    'answer.mjs': 'export default () => ({ answer: () => ({}) })',
    'a.yaml': [
      `extends: ${demo}`,
      'backends:',
      '  sample:',
      backends ?? `  up: { kind: http, target: 'http://127.0.0.1:9'${backend && `, ${backend}`} }`,
      `  other: { kind: http, identity: headers, target: 'http://127.0.0.1:9' }`,
      'areas:',
      `  fund-data: { backend: up${area} }`,
      '  member-data: { backend: other }',
      'actions:',
      `  - { level: business, area: fund-data, action: fund-list, methods: { GET: ${operation(get)}, POST: ${operation(post)} } }`,
      more,
    ].join('\n'),
  })('a.yaml')
}

/** What is told of it, by key path. */
const told = async (given: Given): Promise<string[]> => {
  const text = reportText(await SETTINGS.check(written(given), { KEY: 'k' }))
  const lines = text
    .split('\n')
    .filter((line) => !/report-only|is empty|tell the business by that name/.test(line))
  return lines.filter(Boolean).map((line) => line.replace(/^\S+ {2}/, ''))
}

const UNTOLD = 'tells the service nowhere which business is meant'
const GET = `actions[0].methods.GET  ${UNTOLD}`
const UP = `backends.up  ${UNTOLD}`
const begins = (start: string) => expect.stringMatching(new RegExp(`^${RegExp.escape(start)}`)) as unknown

describe('C11.6.1 the check, where a service learns no business', () => {
  it('C11.6.1 warns of each operation that says how it is sent, and of the backend once where that decides', async () => {
    expect(await told({ get: 'path: /all' })).toEqual([begins(GET)])
    const [line] = await told({ backend: 'path: /all' })
    expect(line).toBe(
      `${UP}: neither path, query, headers nor a written \`identity\` do — ` +
        'add {business} to one of them, or write `identity: headers` if the service goes by X-Postern-Business (warning)',
    )
    expect(await told({ backend: 'path: /all' })).toHaveLength(1)
    expect(
      await told({ backend: 'path: /all', get: 'query: { a: b }', post: 'timeouts: { idle: 1s }' }),
    ).toEqual([begins(UP), begins(GET)])
  })

  it.each([
    ['identity: none', `path: '/x/{action}'`],
    ['', `path: /all, query: { t: '{{business}}' }`],
    ['', `path: /all, headers: { X-T: '{subject}' }`],
    [`headers: { X-T: '{business}' }`, 'path: /all, headers: { x_t: fixed }'],
    [`path: '/{business}'`, 'path: /all'],
    ['forwardAuthorization: true', 'path: /all, auth: { bearer: { env: KEY } }'],
    ['', `path: /all, auth: { bearer: { env: KEY } }`],
    ['path: /all', `query: { a: '{client}' }`],
    ['', `path: /all, redirects: { max: 1, within: ['/{business}'] }`],
    [
      '',
      `path: /all, method: POST, body: { template: { '{business}': 1, '{business.tenant}': '{subject}' } }`,
    ],
  ])('C11.6.1 warns of %j with %j', async (backend, get) => {
    expect(await told({ backend, get, post: `path: '/{business}'` })).toEqual([begins(GET)])
  })

  it.each([
    ['identity: headers', 'path: /all'],
    ['identity: token', 'path: /all'],
    ['', ''],
    ['identity: none', ''],
    ['', `path: '/t-{business}'`],
    ['', `path: /all, query: { t: '{business}' }`],
    ['', `path: /all, headers: { X-T: '{business}' }`],
    ['', 'path: /all, forwardAuthorization: true'],
    ['', 'path: /all, backend: other'],
    [`path: /all, query: { t: '{business}' }`, `query: { u: x }`],
    ['forwardAuthorization: true, path: /all', ''],
  ])('C11.6.1 tells nothing of %j with %j', async (backend, get) => {
    expect(await told({ backend, get })).toEqual([])
  })

  it.each([
    ['', `path: '/{business.tenant}'`],
    ['', `path: /all, query: { t: 'x {business.tenant}' }`],
    [`headers: { X-T: '{business.tenant}' }`, 'path: /all'],
    [`auth: { bearer: '{business.tenant}' }`, 'path: /all'],
    ['', `path: /all, auth: { basic: { user: '{business.tenant}', password: { env: KEY } } }`],
    ['', `path: /all, method: POST, body: { template: { a: { b: ['{business.tenant}'] } } }`],
  ])('C11.6.1, C8.7 a value of the business tells it as its code does: %j with %j', async (backend, get) => {
    const values = ['ACME', 'GLOBEX', 'INITECH'].map((code) => `${code}: { values: { tenant: ${code} } }`)
    const more = `directory: { businesses: { ${values.join(', ')} } }`
    expect(await told({ backend, get, more })).toEqual([])
  })

  it.each([
    [`target: 'http://127.0.0.1:9', host: '{business.tenant}.internal'`, 'a'],
    [`target: 'http://127.0.0.1:9', auth: { header: { name: X-Key, value: '{business.tenant}' } }`, 'a'],
    [`target: '{business.tenant}', origins: ['http://*.internal']`, 'http://a.internal'],
  ])('C11.6.1, C8.7 so do the host, the credentials and the target of a backend: %s', async (own, first) => {
    const backends = `  up: { kind: http, path: /all, ${own} }`
    const values = ['ACME', 'GLOBEX', 'INITECH'].map(
      (code, at) => `${code}: { values: { tenant: '${first.replace('a', 'abc'.charAt(at))}' } }`,
    )
    expect(await told({ backends, more: `directory: { businesses: { ${values.join(', ')} } }` })).toEqual([])
  })

  it('C11.6.1 tells nothing of memory and modules, which are given the business, alone or around a forwarder', async () => {
    const memory = `  up: { kind: memory, data: ${demo.replace('demo.yaml', 'demo-data.json')} }`
    expect((await told({ backends: memory })).join()).not.toContain(UNTOLD)
    expect(await told({ backends: '  up: { kind: module, file: answer.mjs }' })).toEqual([])
    const around = `  up: { kind: module, file: around.mjs, over: service }\n  service: { kind: http, target: 'http://127.0.0.1:9', path: /all }`
    expect(await told({ backends: around, get: 'path: /own' })).toEqual([])
  })

  it('C11.6.1 warns of websockets and in report-only areas as of any operation', async () => {
    const backends = `  up: { kind: stream, target: 'http://127.0.0.1:9' }`
    const live =
      '  - { level: business, area: fund-data, action: live, methods: { GET: { websocket: true, scopes: { any: [fund.read] }, upstream: { path: /live } } } }'
    expect(await told({ backends, more: live })).toEqual([begins(`actions[1].methods.GET  ${UNTOLD}`)])
    expect(await told({ area: ', mode: report-only', get: 'path: /all' })).toEqual([begins(GET)])
  })

  it('C11.6.1 the configurations of config/ and of its recipes say it', () => {
    const folder = dirname(demo)
    for (const name of ['demo.yaml', 'upstream.yaml', 'sidecar.yaml', 'sandbox.yaml'])
      expect([name, reportText(SETTINGS.load(join(folder, name), {}).problems)]).not.toEqual([
        name,
        expect.stringContaining(UNTOLD),
      ])
    for (const name of recipeNames()) {
      const { configuration, environment } = readPage(name)
      const text = configuration.replace('extends: config/', `extends: ${folder}/`)
      const { problems } = SETTINGS.load(configFiles({ 'my.yaml': text })('my.yaml'), environment)
      expect([name, reportText(problems)]).not.toEqual([name, expect.stringMatching(/nowhere|is not set/)])
    }
  })

  it('C11.6.1 is told by a start and a reload, too', () => {
    const { problems } = SETTINGS.load(written({ get: 'path: /all' }), {})
    expect(reportText(problems)).toContain(UNTOLD)
  })
})
