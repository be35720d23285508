import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ConfigurationError, reportText } from '../../../src/base/config/problems.ts'
import { Hasher, hashSecret, verifySecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { DEMO_HASHES } from '../../../src/operate/settings/dangers.ts'
import { type Dependencies, openParts } from '../../../src/serve/parts/parts.ts'
import { certificateFolder, makeCertificate } from '../../support/certificates.ts'
import { configFiles } from '../../support/config-files.ts'
import { sealKey } from '../../support/seal-key.ts'
import { READING, SETTINGS } from '../../support/settings.ts'

const config = (name: string): string => fileURLToPath(new URL(`../../../config/${name}`, import.meta.url))
const demo = readFileSync(config('demo.yaml'), 'utf8').replace('demo-data.json', config('demo-data.json'))

/** Problems of a file that extends the demo world, as printed, without the folder. */
async function problems(source: string, env: Record<string, string> = {}): Promise<string[]> {
  const file = configFiles({ 'a.yaml': `extends: demo.yaml\n${source}`, 'demo.yaml': demo })
  const text = reportText(await SETTINGS.check(file('a.yaml'), env))
  return text.replaceAll(file('').concat('/'), '').split('\n').filter(Boolean)
}

/** Only what is told of one key. */
const about = (told: readonly string[], key: string): string[] =>
  told.filter((line) => line.includes(`  ${key}`)).map((line) => line.replace(/^\S+ {2}/, ''))

describe('the shipped configurations', () => {
  it.each(['demo.yaml', 'upstream.yaml'])('C10 %s has no problem, not even a warning', async (name) => {
    expect(reportText(await SETTINGS.check(config(name), {}))).toBe('')
  })

  it('C10 upstream.yaml is the demo world with its areas forwarded', () => {
    const { configuration } = SETTINGS.load(config('upstream.yaml'), {
      UPSTREAM_URL: 'http://127.0.0.1:7',
    })
    const { configuration: other } = SETTINGS.load(config('demo.yaml'), {})
    expect(Object.keys(configuration?.backends ?? {})).toEqual(['funds'])
    expect(configuration?.backends['funds']).toMatchObject({ kind: 'http', target: 'http://127.0.0.1:7' })
    expect(configuration?.areas).toMatchObject({
      'fund-data': { backend: 'funds' },
      'member-data': { backend: 'funds' },
    })
    expect({ ...configuration, backends: 0, areas: 0 }).toEqual({ ...other, backends: 0, areas: 0 })
  })

  it('C10 every secret of demo.yaml, and nothing else, is known to be one', () => {
    const written = demo.match(/sha256:[\w-]{43}|\$argon2id\$[^\s'"]+/g)
    expect(new Set(written)).toEqual(DEMO_HASHES)
  })

  it('C10 the demo secrets are those that the documents name', async () => {
    const { clients, users } = SETTINGS.load(config('demo.yaml'), {}).configuration!.directory
    for (const id of ['acme-books', 'globex-ledger', 'ledgerline']) {
      expect(verifySecret(`${id}-secret`, clients[id]!.secrets[0]!)).toBe(true)
    }
    const hasher = new Hasher()
    for (const name of ['alice', 'bob', 'carol']) {
      expect(await hasher.verify(`${name}-password`, users[name]!.password)).toBe(true)
    }
  })

  it.each(['demo.yaml', 'upstream.yaml'])('the editors’ schema accepts %s', (name) => {
    const schema = Compile(JSON.parse(readFileSync(config('schema.json'), 'utf8')))
    expect(schema.Check(parse(readFileSync(config(name), 'utf8')))).toBe(true)
    expect(schema.Check({ ...parse(readFileSync(config(name), 'utf8')), lisen: 1 })).toBe(false)
  })
})

describe('what the environment overrides', () => {
  it('C10 POSTERN_PORT, POSTERN_ADMIN_PORT and POSTERN_DATA', () => {
    const env = { POSTERN_PORT: '8081', POSTERN_ADMIN_PORT: '0', POSTERN_DATA: '/tmp/elsewhere' }
    const { configuration } = SETTINGS.load(config('demo.yaml'), env)
    expect(configuration?.server.listen).toBe('127.0.0.1:8081')
    expect(configuration?.server.authUrl).toBeUndefined()
    expect(configuration?.admin.listen).toBe('127.0.0.1:0')
    expect(configuration?.data).toBe('/tmp/elsewhere')
  })

  it.each(['65536', '-1', 'http', '80 '])('refuses the port "%s"', async (port) => {
    expect(await problems('', { POSTERN_PORT: port })).toEqual([
      `environment  POSTERN_PORT  expected a port from 0 to 65535, got "${port}"`,
    ])
  })

  it.each(['server: { listen: "8080" }', 'admin: { listen: "here" }', 'server: 8080', 'admin: off'])(
    'C10 an address that cannot be read is a problem, also where the environment has its port: %s',
    async (yaml) => {
      const env = { POSTERN_PORT: '8081', POSTERN_ADMIN_PORT: '9091' }
      expect(await problems(yaml, env)).toEqual(await problems(yaml))
      expect(await problems(yaml)).toHaveLength(1)
    },
  )

  it('takes an empty variable as not set', () => {
    expect(SETTINGS.load(config('demo.yaml'), { POSTERN_PORT: '' }).configuration?.server.listen).toBe(
      '127.0.0.1:8080',
    )
  })
})

describe('dangerous combinations', () => {
  it.each([
    'server: { listen: "0.0.0.0:8080", authUrl: "https://id.example.com", baseUrl: "https://api.example.com" }',
    'server: { listen: "[::]:8080", authUrl: "https://id.example.com", baseUrl: "https://api.example.com" }',
    'server: { authUrl: "https://id.example.com", baseUrl: "https://api.example.com" }',
  ])('C10 the demo is served on loopback only: %s', async (server) => {
    const told = await problems(server)
    expect(about(told, 'demo')).toEqual([
      'demo  holds secrets that everyone knows, and so serves a loopback listener only — `postern init` writes a configuration of your own',
    ])
    expect(
      about(told, 'directory.clients["acme-books"]').length +
        about(told, 'directory.clients.acme-books').length,
    ).toBe(1)
  })

  it('C10 its secrets are known also where the file no longer calls itself a demo', async () => {
    const server =
      'server: { listen: "0.0.0.0:8080", authUrl: "https://id.example.com", baseUrl: "https://api.example.com" }'
    const all = await problems(`demo: false\n${server}`)
    // The sample login of the developer pages is warned of by itself.
    const told = all.filter((line) => !line.includes('developers.sample'))
    expect(told).toHaveLength(DEMO_HASHES.size)
    expect(told[0]).toContain('is a secret of the demo world, which everyone knows')
  })

  it('C10 its secrets are known also hashed anew, or in a file of the directory, at the check and at the start', async () => {
    const acme = { id: 'acme-books', kind: 'customer', name: 'A', businesses: ['ACME'], scopes: ['openid'] }
    const granted = {
      grants: ['password'],
      agreement: '2026-01-15',
      secrets: [hashSecret('acme-books-secret')],
    }
    const password = await new Hasher().hash('alice-password')
    const text = `
server: { listen: '0.0.0.0:0', authUrl: 'https://id.example.com', baseUrl: 'https://api.example.com' }
vendor: own
backends: {}
areas: {}
actions: []
directory:
  businesses: { ACME: { name: A, funds: [] } }
  roles: { R: { scopes: [openid] } }
  files: { clients: clients.jsonl }
  users: { alice: { subject: a, password: '${password}', customers: [acme-books], access: { ACME: R } } }
`
    const at = configFiles({
      'a.yaml': text,
      'clients.jsonl': `${JSON.stringify({ ...acme, ...granted })}\n`,
    })
    const told = (await SETTINGS.check(at('a.yaml'), {})).list.map(({ message }) => message)
    expect(told).toEqual([
      'opens its client acme-books to a secret of the demo world, which everyone knows',
      'opens its user alice to a secret of the demo world, which everyone knows',
    ])
    const { configuration } = SETTINGS.load(at('a.yaml'), {})
    await expect(
      openParts(configuration!, {
        ...{ ...READING, extensions: [] },
        addedBackends: { kinds: new Map(), upgrade: undefined },
      } as unknown as Dependencies),
    ).rejects.toThrow(ConfigurationError)
  })

  it.each(['127.0.0.1:1', '127.9.9.9:1', '[::1]:1', 'localhost:1'])('C10 %s is loopback', async (listen) => {
    expect(await problems(`server: { listen: "${listen}" }`)).toEqual([])
  })

  it.each(['127.0.0.1.example.com:1', 'localhost.example.com:1', '0.0.0.0:1', '[::]:1', '10.0.0.1:1'])(
    'C10 %s is not loopback',
    async (listen) => {
      expect(about(await problems(`server: { listen: "${listen}" }`), 'demo')).toHaveLength(1)
    },
  )

  it('an http issuer off loopback is refused, derived or written', async () => {
    const derived = await problems('demo: false\nserver: { listen: "10.0.0.1:80" }')
    expect(about(derived, 'server.authUrl')[0]).toContain('is derived from a listener off loopback, as http')
    const written = await problems('server: { authUrl: "http://id.example.com" }')
    expect(about(written, 'server.authUrl')[0]).toContain('is http off loopback')
  })

  it('with TLS of its own the issuer is derived as https, but not from a listener on every address', async () => {
    const { certificate, key } = makeCertificate(certificateFolder(), 'own')
    const served = (listen: string) =>
      problems(
        `demo: false\nserver: { listen: "${listen}", tls: { certificate: ${certificate}, key: ${key} } }`,
      )
    expect(about(await served('10.0.0.1:443'), 'server')).toEqual([])
    expect(about(await served('0.0.0.0:443'), 'server.authUrl')[0]).toContain(
      '0.0.0.0 is no address for clients',
    )
    const unread = await problems('server: { tls: { certificate: absent.pem, key: absent.key } }')
    expect(about(unread, 'server.tls.certificate')[0]).toContain(
      'cannot be read (ENOENT: there is no such file or folder)',
    )
  })

  it('sample data or state in memory does not go with several workers', async () => {
    const told = await problems('workers: 2\nstore: { kind: memory }')
    expect(about(told, 'backends.sample.kind')).toHaveLength(1)
    expect(about(told, 'store.kind')).toHaveLength(1)
  })

  it('a report-only area is told of, and needs a service behind it', async () => {
    const over = (backend: string) =>
      problems(
        `backends: { service: { kind: http, target: "http://127.0.0.1:1" } }\n` +
          `areas: { fund-data: { backend: ${backend}, mode: report-only } }`,
      )
    const told = about(await over('service'), 'areas.fund-data.mode')
    expect(told).toEqual([expect.stringMatching(/nothing is refused there.*\(warning\)$/)])
    expect(about(await over('sample'), 'areas.fund-data.mode')[0]).toContain(
      'is report-only over a backend of kind memory, which checks nothing for itself',
    )
  })

  it.each([
    ['memory', '{ kind: memory, data: "sample.json" }'],
    ['module', '{ kind: module, file: "answer.mjs" }'],
    ['module', '{ kind: module, file: "around.mjs", over: service }'],
  ])('an operation of a report-only area needs a service behind it too, and no %s: %s', async (kind, own) => {
    const told = await problems(
      `backends: { service: { kind: http, target: "http://127.0.0.1:1" }, own: ${own} }\n` +
        `areas: { fund-data: { backend: service, mode: report-only } }\n` +
        `actions:\n  - { level: fund, area: fund-data, action: x, ` +
        `methods: { GET: { scopes: { any: [fund.read] }, upstream: { backend: own } } } }`,
    )
    expect(about(told, 'areas.fund-data.mode')).toEqual([
      expect.stringContaining(
        `is report-only over a backend of kind ${kind}, which checks nothing for itself`,
      ),
    ])
  })

  it('an admin listener off loopback needs a token', async () => {
    expect(about(await problems('admin: { listen: "0.0.0.0:9090" }'), 'admin.listen')).toHaveLength(1)
  })

  it('a list of trusted proxies that trusts everyone is refused', async () => {
    expect(
      about(await problems('server: { trustedProxies: ["0.0.0.0/0"] }'), 'server.trustedProxies'),
    ).toHaveLength(1)
  })

  const action = (rest: string) =>
    `actions:\n  - { level: fund, area: fund-data, action: x, methods: { GET: ${rest} } }`

  it('an action without scopes is refused', async () => {
    expect(await problems(action('{}'))).toHaveLength(1)
    expect(await problems(action('{ scopes: {} }'))).toHaveLength(1)
    expect(await problems(action('{ scopes: { any: [] } }'))).toHaveLength(1)
  })

  it('an action that could never be reached is refused', async () => {
    const one =
      '  - { level: fund, area: fund-data, action: x, methods: { GET: { scopes: { any: [api1] } } } }\n'
    expect(about(await problems(`actions:\n${one}${one}`), 'actions[1]')).toHaveLength(1)
  })
})

describe('T3.12 no token may live longer than revocation rules are kept', () => {
  const ACCESS = 'identity: { accessToken: { lifetime:'
  const CLIENT = 'directory: { clients: { acme-books: { accessTokenLifetime:'

  it('C6.3.3 own access tokens of more than a day are an error, given for all or for a client', async () => {
    for (const [source, key] of [
      [`${ACCESS} 25h } }`, 'identity.accessToken.lifetime'],
      [`${CLIENT} 25h } } }`, 'directory.clients.acme-books.accessTokenLifetime'],
    ] as const) {
      const told = about(await problems(source), key)
      expect(told).toHaveLength(1)
      expect(told[0]).not.toMatch(/^warning/)
      expect(await problems(source.replace('25h', '24h'))).toEqual([])
    }
  })

  it('so are tokens of a foreign issuer of more than 30 days', async () => {
    const issuer = (life: string): string =>
      `issuers: [{ issuer: "https://id.example", jwks: "https://id.example/jwks", audience: a, longestLife: ${life} }]`
    expect(about(await problems(issuer('31d')), 'issuers[0].longestLife')).toEqual([
      expect.stringContaining('must be at most 30d'),
    ])
    expect(about(await problems(issuer('30d')), 'issuers[0].longestLife')).toEqual([])
  })
})

describe('T7 limits of nothing', () => {
  it.each(['target', 'headers', 'body', 'answer', 'bodyRate'])(
    'T7 server.limits.%s of 0 is refused',
    async (name) => {
      const told = await problems(`server: { limits: { ${name}: 0KiB } }`)
      expect(about(told, `server.limits.${name}`)).toEqual([
        `server.limits.${name}  expected a size above zero, such as "64KiB" or "1MiB", got "0KiB"`,
      ])
    },
  )

  it('T7 so is every other amount of 0, but for those of which 0 means something', () => {
    const allowing: string[] = []
    const walk = (node: unknown, key: string): void => {
      if (typeof node !== 'object' || node === null) return
      const { pattern } = node as { pattern?: unknown }
      if (typeof pattern === 'string' && ['0s', '0B'].some((zero) => new RegExp(pattern).test(zero)))
        if (pattern.endsWith('(ms|s|m|h|d)$') || pattern.endsWith('(B|KiB|MiB|GiB)$')) allowing.push(key)
      for (const [name, child] of Object.entries(node)) walk(child, name)
    }
    walk(JSON.parse(readFileSync(config('schema.json'), 'utf8')), '')
    expect([...new Set(allowing)].sort()).toEqual([
      'announce',
      'delay',
      'drain',
      'for',
      'grace',
      'lameDuck',
      'leeway',
      'longest',
      'maxAge',
      'retryAfter',
      'silence',
    ])
  })
})

describe('a check of the whole', () => {
  it('tells problems of several rooms at once, though a section could not be read', async () => {
    const told = await problems(
      [
        'server: { lisen: "127.0.0.1:1" }',
        'scopes: { fund.details.maintain: { implies: [fund.detials.read] } }',
        'directory: { users: { bob: { access: { GLOBEKS: Read-only } } } }',
        'areas: { fund-data: { backend: smaple } }',
        'backends: { sample: { data: nothing.json } }',
      ].join('\n'),
    )
    expect(about(told, 'server.lisen')).toHaveLength(1)
    expect(about(told, 'scopes["fund.details.maintain"].implies[0]')[0]).toContain(
      'did you mean "fund.details.read"?',
    )
    expect(about(told, 'directory.users.bob.access.GLOBEKS')).toHaveLength(1)
    expect(about(told, 'areas.fund-data.backend')).toHaveLength(1)
    expect(about(told, 'backends.sample.data')).toHaveLength(1)
    expect(told).toHaveLength(5)
  })

  it('never shows a secret', async () => {
    const told = await problems(
      'directory: { clients: { acme-books: { secrets: hunter2 } }, users: { bob: { password: hunter2 } } }',
    )
    expect(told.length).toBeGreaterThan(0)
    expect(told.join('\n')).not.toContain('hunter2')
  })
})

describe('C4.5 a rate with a long time', () => {
  const load = (per: string): string =>
    `load: { clients: { rate: { requests: 9, per: ${per} }, byId: { acme-books: { rate: { requests: 9, per: ${per} } } } }, addresses: { rate: { requests: 9, per: ${per} } } }`
  const POSTGRES = `store: { kind: postgres, url: 'postgres://u:p@127.0.0.1:5432/p', seal: [{ id: a, key: { env: SEAL } }] }
admin: { token: { env: TOKEN } }`
  const ENVIRONMENT = { SEAL: sealKey('a').key, TOKEN: 'a-token-of-this-test-0123456789' }
  const keysOf = async (source: string) =>
    (await problems(source, ENVIRONMENT)).flatMap(
      (line) => /load\.\S+(?=.*is full again after each restart)/.exec(line) ?? [],
    )

  it('C4.5 is warned of where a restart makes it full again: it is kept in memory', async () => {
    const told = await problems(load('24h'))
    expect(about(told, 'load.clients.rate.per')).toEqual([
      expect.stringMatching(
        /^load\.clients\.rate\.per {2}is 1d, but the rate is full again after each restart/,
      ),
    ])
    const all = ['load.clients.rate.per', 'load.addresses.rate.per', 'load.clients.byId.acme-books.rate.per']
    expect(await keysOf(load('24h'))).toEqual(expect.arrayContaining(all))
    expect(await keysOf(load('9m'))).toEqual([])
  })

  it('C4.5 is none where the store keeps it, but for addresses', async () => {
    expect(await keysOf(`${load('24h')}\n${POSTGRES}`)).toEqual(['load.addresses.rate.per'])
  })
})
