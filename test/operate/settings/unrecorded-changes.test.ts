import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const config = (name: string): string => fileURLToPath(new URL(`../../../config/${name}`, import.meta.url))
const demo = readFileSync(config('demo.yaml'), 'utf8').replace('demo-data.json', config('demo-data.json'))

interface Found {
  readonly path: string
  readonly message: string
  readonly severity: string
}

/** Problems of the demo world with one more action, or with other keys. */
async function problemsOf(source: string): Promise<readonly Found[]> {
  const file = configFiles({ 'a.yaml': `extends: demo.yaml\n${source}`, 'demo.yaml': demo })
  const { list: problems } = await SETTINGS.check(file('a.yaml'), {})
  return problems.map(({ path, message, severity }) => ({ path: path.join('.'), message, severity }))
}

const action = (method: string, keys: string): string =>
  `actions:\n  - { level: business, area: fund-data, action: search, ` +
  `methods: { ${method}: { scopes: { any: [fund.read] }, ${keys} } } }`

describe('C12.1.1 an operation that is not recorded', () => {
  it('C12.1.1 is told by check, with its reason', async () => {
    expect(await problemsOf(action('POST', 'body: {}, audit: none, auditReason: it only searches'))).toEqual([
      {
        path: 'actions.0.methods.POST.audit',
        severity: 'warning',
        message: 'is none: calls leave no record, since "it only searches"',
      },
    ])
  })

  it.each([
    ['auditReason', 'body: {}, audit: none', 'is missing'],
    ['auditReason', 'body: {}, auditReason: why', 'has no use without'],
    ['auditReason', 'body: {}, audit: intent, auditReason: why', 'has no use without'],
    ['auditFields', 'body: {}, audit: none, auditReason: why, auditFields: [A]', 'has no use with'],
    ['auditFields', 'consumes: [a/b], auditFields: [A]', 'streams them'],
    ['auditFields', 'auditFields: [A]', 'has no use without a `body`'],
    ['auditFields.0', 'body: {}, auditFields: ["/a~"]', 'expected a name, or a JSON Pointer'],
  ])('C12.1.1 a problem at %s: %s', async (key, keys, told) => {
    const problems = await problemsOf(action('POST', keys))
    expect(problems.filter(({ severity }) => severity === 'error')).toMatchObject([
      { path: `actions.0.methods.POST.${key}`, message: expect.stringContaining(told) },
    ])
  })

  it.each([
    ['a GET with `audit: intent`', action('GET', 'audit: intent')],
    ['parts of a body', action('POST', 'body: {}, auditFields: [Status, "/Address/City", "with space"]')],
  ])('C12.1.1 there is no problem with %s', async (_what, source) => {
    expect(await problemsOf(source)).toEqual([])
  })
})

describe('C12.1.1 a trail that is off', () => {
  it('C12.1.1 is told by check beside operations that would leave records', async () => {
    expect(await problemsOf('audit: { enabled: false }')).toEqual([
      {
        path: 'audit',
        severity: 'warning',
        message: expect.stringMatching(/^is off: \d+ operations would leave/),
      },
    ])
  })

  it.each([
    ['that only read', action('GET', '')],
    ['that say why they need none', action('POST', 'body: {}, audit: none, auditReason: why')],
  ])('C12.1.1 is not told of beside operations %s', async (_what, source) => {
    const told = await problemsOf(`audit: { enabled: false }\n${source}`)
    expect(told.filter(({ path }) => path === 'audit')).toEqual([])
  })

  it('C12.1.1 is told beside a GET that its upstream is sent as a POST', async () => {
    const backends = 'backends: { up: { kind: http, target: "http://127.0.0.1:1" } }\n'
    const source = action('GET', 'upstream: { backend: up, method: POST }')
    const told = await problemsOf(`audit: { enabled: false }\n${backends}${source}`)
    expect(told).toMatchObject([{ path: 'audit', message: expect.stringContaining('1 operation would') }])
  })
})
