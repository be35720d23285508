import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { describing, made, OPEN_BANKING, REPOSITORIES, type Written } from './described-service.ts'

/** What the service is asked for, by method and action. */
const askedFor = ({ actions }: Written): Readonly<Record<string, string>> =>
  Object.fromEntries(
    actions.flatMap(({ action, methods }) =>
      Object.entries(methods as Record<string, { upstream?: { path?: string } }>).map(
        ([method, { upstream }]) => [`${method} ${action}`, upstream?.path ?? `/${action}`],
      ),
    ),
  )

/** `init` of a description in a folder of its own, as in a script. */
async function init(description: string, ...options: readonly string[]) {
  const from = configFiles({ 'api.yaml': description })('api.yaml')
  const folder = join(dirname(from), 'own')
  const ended = await runVerb(['init', folder, '--from', from, ...options])
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return { ...ended, folder, from, read }
}

describe('where the business of each operation is', () => {
  it('C10 keeps an operation of one business beside that of everybody: words of the path tell them apart', async () => {
    const { written, code } = await made(OPEN_BANKING, '--business-in', 'path:AccountId')
    const asked = askedFor(written)
    expect(asked).toMatchObject({
      'GET balances': '/balances',
      'GET accounts/balances': '/accounts/{business}/balances',
      'GET accounts/transactions': '/accounts/{business}/transactions',
      'GET statements/{StatementId}': '/accounts/{business}/statements/{StatementId}',
      'GET accounts': '/accounts',
      'GET accounts/accountid': '/accounts/{business}',
      'GET party': '/accounts/{business}/party',
    })
    expect(Object.values(asked).filter((path) => path.includes('{business}'))).toHaveLength(13)
    expect([Object.keys(asked).length, code]).toEqual([28, 3])
  })

  it('C10 keeps every operation of a service whose paths differ in the word before the business', async () => {
    const { written } = await made(REPOSITORIES, '--business-in', 'path:org')
    expect(askedFor(written)).toMatchObject({
      ...{ 'GET orgs/issues': '/orgs/{business}/issues', 'GET issues': '/issues' },
      ...{ 'GET user/issues': '/user/issues', 'GET repos': '/orgs/{business}/repos' },
      ...{ 'GET packages/{id}': '/packages/{id}', 'GET orgs': '/orgs', 'GET orgs/org': '/orgs/{business}' },
      'GET orgs/packages/{name}': '/orgs/{business}/packages/{name}',
    })
    expect(Object.keys(askedFor(written))).toHaveLength(21)
  })

  it.each([
    ['the first', ['/items/{id}', '/items/{tenantId}']],
    ['the last', ['/items/{tenantId}', '/items/{id}']],
  ])('C10 leaves out the operation without a business where one must go: it is %s', async (_which, paths) => {
    const description = JSON.parse(describing(paths)) as {
      paths: Record<string, { get: { parameters: unknown[] } }>
    }
    // The service takes the business of one of them in the query, and both have one path.
    for (const [path, { get }] of Object.entries(description.paths))
      if (path.includes('tenantId')) {
        const where = { in: 'query', name: 'tenant', schema: { type: 'string' } }
        get.parameters = [{ ...where, name: 'tenantId', in: 'path', required: true }, where]
      }
    const { written, notes, code } = await made(
      JSON.stringify(description),
      ...['--business-in', 'query:tenant'],
    )
    expect(written.actions).toHaveLength(1)
    expect(written.actions[0]?.methods['GET']).toMatchObject({
      upstream: { query: { tenant: '{business}' } },
    })
    expect(notes).toContainEqual(
      expect.stringMatching(/GET \/items\/\{id\}: left out: GET \/items\/\{tenantId\} has the same action/),
    )
    expect(code).toBe(0)
  })

  it('C10 tells where the business of each operation is, and ends with exit code 3 where one has none', async () => {
    const { code, stderr, read, folder, stdout } = await init(
      describing(['/tenants/{tenantId}/orders', '/orders', 'TRACE /orders/all', '/currencies']),
      ...['--shared', 'GET /currencies', '--yes'],
    )
    const table = `OPERATION                       ACTION                 BUSINESS
GET /tenants/{tenantId}/orders  orders/tenants/orders  path:tenantId
TRACE /orders/all               -                      left out
GET /currencies                 currencies/currencies  shared: it belongs to no business

1 of 3 operations without a business; every business gets the same from them:
GET /orders                     orders/orders
`
    expect(read('postern.operations.txt')).toBe(table)
    expect(stderr).toContain(`postern.operations.txt):\n${table}\n`)
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(
      "postern: exit code 3: 1 operation has no business. Say where it is (--business-in), leave it out (--only), or say that it belongs to nobody: --shared 'GET /orders'",
    )
    expect(read('postern.yaml')).toContain(
      '  # GET /orders has no business: every business gets the same from it\n  - level: business\n',
    )
    expect(read('postern.yaml')).toContain(
      '  # GET /currencies is shared: it belongs to no business (--shared)\n  - level: business\n',
    )
    expect([code, stdout]).toEqual([3, expect.stringContaining('client_secret')])
    expect(await runVerb(['check', join(folder, 'postern.yaml')])).toMatchObject({ code: 0 })
  })

  it.each([
    [['--shared', 'GET /orders', '--shared', '/currencies'], 0],
    [['--shared', '*'], 0],
    [['--shared', '* /*'], 0],
    [['--shared', 'get /curr*'], 3],
    [['--business-in', 'identity'], 0],
  ])('C10 ends with the exit code of what is left to decide: %j, %i', async (options, expected) => {
    const { code, stderr } = await init(
      describing(['/tenants/{tenantId}/orders', '/orders', '/currencies']),
      ...options,
    )
    expect([code, stderr.includes('exit code 3')]).toEqual([expected, expected === 3])
  })

  it.each([
    [['--shared', 'GET /currency'], '--shared GET /currency: ', 'has no such operation'],
    [['--shared', 'PUT /orders'], '--shared PUT /orders: ', 'has no such operation'],
    [
      ['--shared', '/tenants/*'],
      '--shared /tenants/*: GET /tenants/{tenantId}/orders has a business already',
      '',
    ],
    [['--shared', 'TRACE /a'], '--shared TRACE /a: its operations are left out', ''],
    [['--not-business', 'path:tenant'], '--not-business path:tenant: no operation of', ''],
    [['--not-business', 'host'], '--not-business: expected header:NAME', ''],
  ])('C10 refuses %j, which says something of nothing', async (options, begins, why) => {
    const { code, stderr, read } = await init(
      describing(['/tenants/{tenantId}/orders', '/orders', 'TRACE /a']),
      ...options,
    )
    expect(stderr).toContain(`postern: ${begins}`)
    expect(stderr).toContain(why)
    expect(code).not.toBe(0)
    expect(() => read('postern.yaml')).toThrow('ENOENT')
  })

  it('C10 overwrites no table that is there', async () => {
    const { folder, from } = await init(describing(['/orders']), '--shared', '/orders')
    rmSync(join(folder, 'postern.yaml'))
    const again = await runVerb(['init', folder, '--from', from])
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('postern.operations.txt exists already and was not changed')
  })

  const NAMED = {
    '/orders': {
      post: {
        parameters: [{ name: 'tenant', in: 'cookie', schema: { type: 'string' } }],
        requestBody: {
          content: {
            'application/json': {
              schema: {
                type: 'object',
                properties: {
                  order: { type: 'object', properties: { tenant_id: { type: 'string' } } },
                  lines: { type: 'array', items: { properties: { business: { type: 'string' } } } },
                },
              },
            },
          },
        },
        responses: { '200': { description: 'ok' } },
      },
    },
  }

  it('C10 gives the options for members that have the name of a business, to be pasted as they are', async () => {
    const description = describing([], { paths: NAMED })
    const refused = await init(description)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    const options = refused.stderr.split('\n').filter((line) => line.startsWith('  --'))
    expect(options).toEqual([
      '  --not-business cookie:tenant',
      ...['  --business-in body:/order/tenant_id', '  --not-business body:/order/tenant_id'],
      '  --not-business body:/lines/business',
    ])
    const pasted = options.filter((line) => line.includes('--not-')).flatMap((line) => line.trim().split(' '))
    const { code, read } = await init(description, ...pasted, '--shared', 'POST /orders')
    const { actions } = parse(read('postern.yaml')) as Written
    expect(actions[0]?.methods['POST']).toMatchObject({
      body: { schema: { properties: { order: { properties: { tenant_id: { type: 'string' } } } } } },
    })
    expect(code).toBe(0)
  })

  it('C10 writes nothing where a body that is not read holds the business, whatever an option says', async () => {
    const content = {
      'multipart/form-data': { schema: { type: 'object', properties: { tenantId: { type: 'string' } } } },
    }
    const upload = { requestBody: { content }, responses: { '200': { description: 'ok' } } }
    const { code, stderr } = await init(
      describing([], { paths: { '/files': { post: upload } } }),
      ...['--business-in', 'body:/tenantId'],
    )
    expect(code).toBe(1)
    expect(stderr).toContain('POST /files: tenantId of the body')
    expect(stderr).toContain('\n  --not-business body:/tenantId\n')
    expect(stderr).not.toContain('\n  --business-in body:/tenantId\n')
  })
})
