import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const demo = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

const CODES = ['ACME', 'GLOBEX', 'INITECH'] as const

interface Given {
  /** Values of each business, as YAML. */
  readonly values: Readonly<Partial<Record<(typeof CODES)[number], string>>>
  /** Of the backend `up`. */
  readonly backend?: string
  /** What the GET of fund-list says of its upstream. */
  readonly get?: string
  /** More businesses, as JSON Lines. */
  readonly file?: string
}

const filed = ({ values, backend = '', get = '', file }: Given): string => {
  const inline = CODES.map(
    (code) => `    ${code}: { name: ${code}, funds: any, values: { ${values[code] ?? ''} } }`,
  )
  return configFiles({
    'secret.txt': 'from-a-file\n',
    ...(file !== undefined && { 'businesses.jsonl': file }),
    'a.yaml': [
      `extends: ${demo}`,
      'directory:',
      ...(file === undefined ? [] : ['  files: { businesses: businesses.jsonl }']),
      '  businesses:',
      ...inline,
      'backends:',
      '  sample:',
      `  up: { kind: http, identity: none, target: 'http://127.0.0.1:9'${backend && `, ${backend}`} }`,
      'areas:',
      '  fund-data: { backend: up }',
      '  member-data: { backend: up }',
      'actions:',
      `  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] }, upstream: { ${get} } } } }`,
    ].join('\n'),
  })('a.yaml')
}

/** What is told of it. */
const told = async (given: Given, environment = { KEY: 'k' }): Promise<string[]> => {
  const text = reportText(await SETTINGS.check(filed(given), environment))
  const lines = text.split('\n').filter((line) => !/report-only|is empty|nowhere which/.test(line))
  return lines.filter(Boolean).map((line) => line.replace(/^\S+ {2}/, ''))
}

const ALL = { ACME: 'db: acme', GLOBEX: 'db: globex', INITECH: 'db: initech' }

/** `{business.db}` in each place that an operation or a backend has. */
const PLACES: readonly Pick<Given, 'backend' | 'get'>[] = [
  { get: `path: '/{business.db}/x'` },
  { get: `path: /x, query: { tenant: '{business.db}' }` },
  { get: `path: /x, headers: { X-Tenant: 'a-{business.db}' }` },
  { backend: `path: /x, headers: { X-Tenant: '{business.db}' }` },
  { backend: `path: '/{business.db}/x'` },
  { get: `path: /x, auth: { basic: { user: '{business.db}', password: { env: KEY } } }` },
  { backend: `path: /x, auth: { header: { name: X-Key, value: 'k-{business.db}' } }` },
  { backend: `path: /x, host: '{business.db}.internal'` },
  {
    get: `path: /x, method: POST, body: { template: { Deep: [{ Tenant: '{business.db}' }] } }`,
  },
  { get: `path: /x, method: POST, body: { format: form, template: { tenant: '{business.db}' } }` },
]

describe('C8.7 the check of values of businesses', () => {
  it.each(PLACES)('C8.7 a business that lacks a value is a problem that names it: %j', async (place) => {
    expect(await told({ values: ALL, ...place })).toEqual([])
    expect(await told({ values: { ...ALL, GLOBEX: 'bd: globex' }, ...place })).toEqual([
      'directory.businesses.GLOBEX  lacks a value: business "GLOBEX" has no "db", which GET fund-data/fund-list names as {business.db} — did you mean "bd"?',
    ])
  })

  it.each(PLACES)('C8.7 two businesses for whom it is sent the same are warned of: %j', async (place) => {
    const warned = await told({ values: { ...ALL, INITECH: 'db: acme' }, ...place })
    expect(warned).toEqual([
      `${place.get === undefined ? 'backends.up' : 'actions[0].methods.GET.upstream'}  sends the same for the businesses ACME and INITECH: they have the same {business.db} — give each of them values of its own (warning)`,
    ])
  })

  it('C8.7 one value that differs is enough, and what nothing names counts for nothing', async () => {
    const get = `path: '/{business.db}', headers: { X-T: '{business.tenant}' }`
    const shared = 'db: all, colour: red'
    const values = {
      ACME: `${shared}, tenant: a`,
      GLOBEX: `${shared}, tenant: b`,
      INITECH: `${shared}, tenant: c`,
    }
    expect(await told({ values, get })).toEqual([])
    const same = { ...values, INITECH: 'db: all, colour: blue, tenant: a' }
    expect(await told({ values: same, get })).toEqual([
      expect.stringContaining('ACME and INITECH: they have the same {business.db} and {business.tenant}'),
    ])
  })

  it('C8.7 a text of a file or of the environment names nothing, nor does the name of a member', async () => {
    const body = `template: { Query: { file: secret.txt }, Key: { env: KEY }, Tenant: '{business.db}', '{business.name}': x }`
    const get = `path: /x, method: POST, headers: { X-K: { env: KEY } }, body: { ${body} }`
    expect(await told({ values: ALL, get }, { KEY: 'is {business.tenant}' })).toEqual([])
  })

  it('C8.7 what an operation replaces of its backend is not asked for', async () => {
    const backend = `path: '/{business.db}', headers: { X-Tenant: '{business.tenant}' }`
    const get = `path: /x, headers: { x_tenant: '{business.db}' }`
    expect(await told({ values: ALL, backend, get })).toEqual([])
    expect(await told({ values: ALL, backend })).toHaveLength(3)
  })

  it('C11.6.1 a value tells the service its business', async () => {
    const text = async (get: string) =>
      reportText(await SETTINGS.check(filed({ values: ALL, get }), { KEY: 'k' }))
    expect(await text('path: /x')).toContain('tells the service nowhere which business is meant')
    for (const get of PLACES.flatMap((place) => place.get ?? []))
      expect(await text(get)).not.toContain('nowhere')
  })

  it('C8.7 values come from the environment and from files, and no problem shows one', async () => {
    const get = `path: '/{business.db}'`
    const values = {
      ACME: 'db: { env: KEY }',
      GLOBEX: 'db: { file: secret.txt }',
      INITECH: 'db: { env: NONE }',
    }
    expect(await told({ values, get })).toEqual([expect.stringContaining('NONE, which is not set')])
    const long = { ...values, INITECH: 'db: { env: LONG }' }
    const report = (await told({ values: long, get }, { KEY: 'k', LONG: 'x'.repeat(1025) } as never)).join()
    expect(report).toContain('directory.businesses.INITECH.values.db  is longer than 1024 bytes')
    expect(report).not.toContain('xxx')
    const same = { ACME: 'db: { env: KEY }', GLOBEX: 'db: { env: KEY }', INITECH: 'db: c' }
    const [warning] = await told({ values: same, get }, { KEY: 'very-secret' })
    expect(warning).toContain('ACME and GLOBEX')
    expect(warning).not.toContain('very-secret')
  })

  it.each([
    ['1,024 bytes are taken, of UTF-8', `db: '${'é'.repeat(512)}'`, undefined],
    ['1,026 are not', `db: '${'é'.repeat(513)}'`, 'is longer than 1024 bytes'],
    [
      '64 are taken',
      Array.from({ length: 63 }, (_, n) => `k${n}: x`)
        .concat('db: x')
        .join(', '),
      undefined,
    ],
    [
      '65 are not',
      Array.from({ length: 64 }, (_, n) => `k${n}: x`)
        .concat('db: x')
        .join(', '),
      'has 65 entries',
    ],
    ['an empty one', `db: ''`, 'expected a text, or a secret'],
    ['a number', 'db: 12', 'expected a text, or a secret'],
    ['what only a record may say', 'db: { secret: x }', 'expected a text, or a secret'],
    ['a name with a dot', `'a.b': x, db: x`, 'is not a possible key here'],
    ['a name that begins with a digit', '1a: x, db: x', 'is not a possible key here'],
  ])('C8.7 %s', async (_what, acme, problem) => {
    const lines = await told({ values: { ...ALL, ACME: acme }, get: `path: '/{business.db}'` })
    if (problem === undefined) expect(lines).toEqual([])
    else expect(lines.join()).toContain(problem)
  })

  it('C8.7 in a file of businesses values are texts: a reference is none', async () => {
    const line = (values: object) => JSON.stringify({ code: 'FILED', name: 'Filed', funds: 'any', values })
    const tell = (values: object) => told({ values: ALL, get: `path: '/{business.db}'`, file: line(values) })
    expect(await tell({ db: 'a' })).toEqual([])
    expect(await tell({ db: { env: 'KEY' } })).toEqual([expect.stringContaining('expected a text')])
    expect(await tell({ db: { secret: 'x' } })).toEqual([expect.stringContaining('expected a text')])
    expect(await tell({})).toEqual([
      expect.stringContaining('directory.files.businesses  lacks a value: business "FILED" has no "db"'),
    ])
  })

  it('C8.7 of a large directory only some are reported, with the number of the others', async () => {
    const lines = Array.from({ length: 102 }, (_, n) =>
      JSON.stringify({ code: `B${n}`, name: 'B', funds: 'any' }),
    )
    const found = await told({ values: ALL, get: `path: '/{business.db}'`, file: lines.join('\n') })
    expect(found).toHaveLength(21)
    expect(found.join()).toContain('lacks 82 more values')
  })
})
