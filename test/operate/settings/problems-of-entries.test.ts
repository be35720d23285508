import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { problemLines } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const data = fileURLToPath(new URL('../../../config/demo-data.json', import.meta.url))

/** What a configuration of its own is told, in the order of the file: line, key path, message. */
async function problems(source: string): Promise<readonly string[]> {
  const file = configFiles({ 'a.yaml': source })
  const told = problemLines(await SETTINGS.check(file('a.yaml'), {}))
  return told.map((line) => line.replaceAll(file('a.yaml'), 'a.yaml'))
}

const base = (parts: { actions: string; areas?: string; backends?: string; more?: string }): string => `
vendor: own
scopes:
  fund.read: { description: Read }
  fund.write: { description: Write, implies: [fund.read] }
backends:
${parts.backends ?? `  sample: { kind: memory, data: ${data} }`}
areas:
${parts.areas ?? '  funds: { backend: sample }'}
actions:
${parts.actions}
${parts.more ?? ''}
`

const action = (name: string, operation: string, area = 'funds'): string =>
  `  - { level: business, area: ${area}, action: ${name}, methods: { GET: ${operation} } }`

const GOOD = '{ scopes: { any: [fund.read, fund.write] } }'

describe('a mistake in one entry', () => {
  it('C11.6.1 hides no problem of the entries after it, whose lines are right', async () => {
    const told = await problems(
      base({
        actions: [
          action('one', '{ scops: { any: [fund.read] } }'),
          action('two', '{ scopes: { any: [fund.raed] } }'),
          action('three', GOOD, 'fund'),
          '  - { level: fnud, area: funds, action: four, methods: {} }',
          action('five', '{ scopes: { all: [fund.read] }, versions: [2], defaultVersion: 3 }'),
        ].join('\n'),
      }),
    )
    expect(told).toEqual([
      'a.yaml:11  actions[0].methods.GET.scops  is not a known key here — did you mean "scopes"?',
      'a.yaml:11  actions[0].methods.GET.scopes  is missing: expected a section of keys',
      'a.yaml:12  actions[1].methods.GET.scopes.any[0]  names no scope of the catalogue: "fund.raed" — did you mean "fund.read"?',
      'a.yaml:13  actions[2].area  names no area: "fund" — did you mean "funds"?',
      'a.yaml:14  actions[3].level  expected one of "business", "fund", got "fnud" — did you mean "fund"?',
      'a.yaml:15  actions[4].methods.GET.defaultVersion  is not one of the versions 2',
    ])
  })

  it('C11.6.1 hides no problem of the other methods of its action', async () => {
    const told = await problems(
      base({
        actions:
          '  - { level: business, area: funds, action: one, methods: { GET: { scopes: 1 }, PUT: { scopes: { any: [x] } } } }',
      }),
    )
    expect(told).toEqual([
      expect.stringContaining('actions[0].methods.GET.scopes  expected a section of keys, got 1'),
      expect.stringContaining('actions[0].methods.PUT.scopes.any[0]  names no scope of the catalogue: "x"'),
    ])
  })

  it('C11.6.1 makes no problem of what refers to it', async () => {
    const told = await problems(`${base({
      backends: '  sample: { kind: memry }',
      areas: '  funds: { backend: sample, mod: enforce }',
      actions: action('one', '{ scopes: { any: [fund.list] } }'),
    }).replace('scopes:\n', 'scopes:\n  fund.list: { descripton: List }\n')}
load: { backends: { byName: { sample: 5, smaple: 5 } } }
maintenance:
  - { scope: area/funds, until: 2026-02-01T20:00Z }
  - { scope: area/fnuds, until: '2026-02-01T20:00Z' }
directory:
  businesses: { ACME: { nam: Acme } }
  roles: { Clerk: { scops: [] } }
  clients:
    books: { kind: customr }
    other: { kind: public, name: Other, grants: [authorizaton_code], businesses: [ACME], scopes: [fund.list, fund.lits] }
  users:
    ann: { subject: a, password: x, customers: [books, boks], access: { ACME: Clerk, ACNE: Clerk } }
`)
    const paths = told.map((line) => line.replace(/^\S+ +/, ''))
    expect(paths.filter((line) => line.includes('names no'))).toEqual([
      expect.stringMatching(/^load\.backends\.byName\.smaple {2}names no backend: "smaple"/),
      expect.stringMatching(/^maintenance\[1\]\.scope {2}names no area: "fnuds"/),
      expect.stringMatching(
        /^directory\.users\.ann\.customers\[1\] {2}names no client of the directory: "boks" — did you mean "books"\?/,
      ),
      expect.stringMatching(
        /^directory\.users\.ann\.access\.ACNE {2}names no business of the directory: "ACNE"/,
      ),
    ])
    expect(paths).toContainEqual(
      expect.stringContaining('grants[0]  expected one of "password", "authorization_code", "refresh_token"'),
    )
    expect(paths).toContainEqual(expect.stringContaining('did you mean "authorization_code"?'))
  })

  it('C11.6.1 hides no problem of the issuers after it', async () => {
    const issuer = (more: string): string =>
      `  - { issuer: 'https://${more}', jwks: 'https://id.example/jwks', audience: a`
    const told = await problems(
      base({
        actions: action('one', GOOD),
        more: `issuers:\n${issuer('a.example')}, name: a, leway: 1s }\n${issuer('b.example')}, name: b, scopeMap: { clerk: [fund.raed] } }`,
      }),
    )
    expect(told).toEqual([
      expect.stringContaining('issuers[0].leway  is not a known key here'),
      expect.stringContaining('issuers[1].scopeMap.clerk[0]  names no scope of the catalogue: "fund.raed"'),
    ])
  })

  it('C11.6.1 of an area or a backend that does not exist hides no problem of its actions', async () => {
    const wrong = '{ scopes: { any: [fund.wirte] } }'
    const told = await problems(
      base({
        areas: '  funds: { backend: smaple }\n  other: { backend: sample }',
        actions: [
          action('one', wrong),
          action('two', wrong, 'nowhere'),
          action('three', '{ scopes: { any: [fund.wirte] }, upstream: { backend: sampel } }', 'other'),
        ].join('\n'),
      }),
    )
    expect(told.filter((line) => line.includes('"fund.wirte" — did you mean "fund.write"?'))).toHaveLength(3)
    expect(told.filter((line) => line.includes('did you mean "sample"?'))).toHaveLength(2)
    expect(
      told.filter((line) => line.includes('names no area: "nowhere" — there are funds, other')),
    ).toHaveLength(1)
    expect(told).toHaveLength(6)
  })

  it('C11.6.1 is refused by serve too, with the cheap problems of all other entries', () => {
    const file = configFiles({
      'a.yaml': base({
        actions: action('one', '{ scopes: 1 }'),
        more: 'load: { backends: { byName: { smaple: 5 } } }',
      }),
    })
    const { configuration, problems } = SETTINGS.load(file('a.yaml'), {})
    expect(configuration).toBeUndefined()
    expect(problems.list.map(({ path }) => path.join('.'))).toEqual([
      'actions.0.methods.GET.scopes',
      'load.backends.byName.smaple',
    ])
  })
})

describe('what a check compiles', () => {
  const websocket = '{ scopes: { any: [fund.read, fund.write] }, websocket: true }'
  const over = (backend: string): Promise<readonly string[]> =>
    problems(base({ backends: `  sample: ${backend}`, actions: action('live', websocket) }))

  it('C11.6.1 is what is served: a websocket over a backend that takes one', async () => {
    expect(await over("{ kind: stream, target: 'http://127.0.0.1:9' }")).toEqual([])
  })

  it.each([`{ kind: memory, data: ${data} }`, "{ kind: http, target: 'http://127.0.0.1:9' }"])(
    'C11.6.1 and no websocket over another: %s',
    async (backend) => {
      expect(await over(backend)).toEqual([
        expect.stringContaining('actions[0].methods.GET.websocket  needs a backend of kind stream'),
      ])
    },
  )

  it('C11.6.1 a websocket over a backend that cannot be opened has that problem only', async () => {
    expect(await over("{ kind: stream, target: 'http://127.0.0.1:9', tls: { ca: absent.pem } }")).toEqual([
      expect.stringContaining('backends.sample.tls.ca'),
    ])
  })
})

describe('two listeners', () => {
  const listening = (server: string, admin: string, probes?: string): Promise<readonly string[]> =>
    problems(
      base({
        actions: action('one', GOOD),
        more:
          `server: { listen: '${server}', authUrl: 'https://id.example', baseUrl: 'https://api.example' }\n` +
          `admin: { token: { env: T, default: 0123456789abcdef }, listen: '${admin}'` +
          `${probes === undefined ? '' : `, probes: '${probes}'`} }`,
      }),
    )

  it.each([
    ['127.0.0.1:8080', '127.0.0.1:8080'],
    ['127.0.0.1:8080', 'localhost:8080'],
    ['0.0.0.0:8080', '127.0.0.1:8080'],
    ['[::]:8080', '10.0.0.1:8080'],
    ['[::1]:8080', '[::]:8080'],
    ['0.0.0.0:8080', '[::]:8080'],
  ])('C11.1 have ports of their own: %s, %s', async (server, admin) => {
    expect(await listening(server, admin)).toEqual([
      expect.stringContaining(
        'admin.listen  has the port of server.listen: 8080 — give each listener a port of its own',
      ),
    ])
  })

  it.each([
    ['127.0.0.1:8080', '127.0.0.1:8081'],
    ['127.0.0.1:0', '127.0.0.1:0'],
    ['127.0.0.1:8080', '127.0.0.2:8080'],
    ['0.0.0.0:8080', '[::1]:8080'],
  ])('C11.1 may be at one machine: %s, %s', async (server, admin) => {
    expect(await listening(server, admin)).toEqual([])
  })

  it('C11.1 the one for probes is a third, and no port is above 65535', async () => {
    expect(await listening('127.0.0.1:8080', '127.0.0.1:9090', '0.0.0.0:9090')).toEqual([
      expect.stringContaining('admin.probes  has the port of admin.listen: 9090'),
    ])
    expect(await listening('127.0.0.1:80800', '127.0.0.1:9090')).toEqual([
      expect.stringContaining('server.listen  expected a port from 0 to 65535, got 80800'),
    ])
  })
})

describe('what nothing refers to', () => {
  it('C11.6.1 is warned of: scope values and backends', async () => {
    const told = await problems(
      base({
        backends: `  sample: { kind: memory, data: ${data} }\n  spare: { kind: http, target: 'http://127.0.0.1:9' }`,
        actions: action('one', '{ scopes: { any: [fund.read] } }'),
        more: 'directory: { roles: { Clerk: { scopes: [given] } } }',
      }).replace(
        'scopes:\n',
        'scopes:\n  left.over: { description: Old }\n  given: { description: Given }\n',
      ),
    )
    expect(told).toEqual([
      'a.yaml:4  scopes["left.over"]  is not used: no action needs it, and no client or role has it (warning)',
      'a.yaml:10  backends.spare  is not used: no area and no action names it (warning)',
    ])
  })

  it('C11.6.1 is not warned of where a problem may be the reason', async () => {
    const told = await problems(base({ actions: action('one', '{ scopes: { any: [fund.wirte] } }') }))
    expect(told).toEqual([expect.stringContaining('names no scope of the catalogue: "fund.wirte"')])
  })

  it('C8.9 is no backend that a module in use runs around', async () => {
    const told = await problems(
      base({
        backends: `  sample: { kind: module, file: ${fileURLToPath(new URL('../../../config/examples/map-fields.ts', import.meta.url))}, over: service }\n  service: { kind: http, target: 'http://127.0.0.1:9' }`,
        actions: action('one', GOOD),
      }),
    )
    expect(told.filter((line) => line.includes('is not used'))).toEqual([])
  })
})

describe('C11.2 the typ of an issuer', () => {
  const typ = (value: string): Promise<readonly string[]> =>
    problems(
      base({
        actions: action('one', GOOD),
        more: `issuers: [{ issuer: 'https://id.example', jwks: 'https://id.example/jwks', audience: a, typ: [${value}] }]`,
      }),
    )

  it.each(['JWT', 'application/JWT', 'at+jwt', 'Application/At+Jwt'])('C11.2 may be %s', async (value) => {
    expect(await typ(value)).toEqual([])
  })

  it.each(['text/jwt', 'at jwt', 'application/', '"jwt;v=1"'])(
    'C11.2 is refused where it could match no token: %s',
    async (value) => {
      expect(await typ(value)).toEqual([
        expect.stringContaining('typ[0]  expected the name of a media type, such as "at+jwt" or "JWT", got'),
      ])
    },
  )
})
