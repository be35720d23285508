import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const demo = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

/** What is told of a backend whose operation `add` tells the business by a member. @param other the section of a second operation */
async function told(other: string, backend = ''): Promise<readonly string[]> {
  const files = configFiles({
    'a.yaml': [
      `extends: ${demo}`,
      'backends:',
      `  up: { kind: http, identity: none, path: '/{business}', target: 'http://127.0.0.1:9'${backend} }`,
      'areas: { fund-data: { backend: up } }',
      'actions:',
      `  - { level: business, area: fund-data, action: add, methods: { POST: { scopes: { any: [fund.read] }, body: {}, upstream: { queryOnly: [], body: { set: { /company: '{business}' } } } } } }`,
      `  - { level: business, area: fund-data, action: other, methods: { ${other} } }`,
    ].join('\n'),
  })
  const text = reportText(await SETTINGS.check(files('a.yaml'), {}))
  return text.split('\n').filter((line) => line.includes('company'))
}

const READ = 'scopes: { any: [fund.read] }'
const CLOSED = 'type: object, additionalProperties: false'

describe('C8.7 the check of names that say the business', () => {
  it('T4.8 tells once for each place which operations lose one', async () => {
    expect(await told(`GET: { ${READ} }, POST: { ${READ}, body: {} }`)).toEqual([
      expect.stringMatching(
        /backends\.up {2}takes "company" out of the query .* that name: GET fund-data\/other, POST fund-data\/other — .*\(warning\)$/,
      ),
      expect.stringMatching(
        /backends\.up {2}refuses "company" in the bodies .* that name: POST fund-data\/other —/,
      ),
    ])
  })

  it.each([
    `GET: { ${READ}, upstream: { queryOnly: [page] } }`,
    `POST: { ${READ}, body: { schema: { ${CLOSED} } }, upstream: { queryOnly: [] } }`,
    `POST: { ${READ}, consumes: [image/png], upstream: { queryOnly: [] } }`,
  ])('tells nothing of %s, which no client can send it in', async (other) => {
    expect(await told(other)).toEqual([])
  })

  it.each([
    [`GET: { ${READ}, upstream: { queryOnly: [com_pany] } }`, 'takes "company" out of the query'],
    [
      `GET: { ${READ}, upstream: { queryOnly: [], requestHeaders: [Company] } }`,
      'leaves out the header "company"',
    ],
    [
      `GET: { ${READ}, parameters: { company: {} }, upstream: { queryOnly: [company] } }`,
      'methods.GET.parameters  lets a client send "company" in the query',
    ],
    [
      `POST: { ${READ}, body: { schema: { ${CLOSED}, properties: { Company: {} } } }, upstream: { queryOnly: [] } }`,
      'methods.POST.body.schema  lets a client send "company" in the body',
    ],
    [
      `POST: { ${READ}, consumes: [multipart/form-data], upstream: { queryOnly: [] } }`,
      'methods.POST.consumes  streams bodies unread',
    ],
  ])('of %s it tells: %s', async (other, words) => {
    expect(await told(other)).toEqual([expect.stringContaining(words)])
  })
})
