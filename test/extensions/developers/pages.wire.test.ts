import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { sampleLogin } from '../../../src/extensions/developers/schema.ts'
import { type FaultRow, FAULTS } from '../../../src/base/kernel/fault-table.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { configFiles } from '../../support/config-files.ts'
import { codeBlocks, unescaped } from './read-page.ts'
import { SHIPPED } from '../../support/shipped.ts'
import { replacedService } from '../../support/replaced-service.ts'
import { postern, type StartedPostern, startPostern } from '../../support/start-postern.ts'
import { SETTINGS } from '../../support/settings.ts'

/** C11.4: the developer pages, over real sockets. */

const PATHS = [
  '/developers',
  '/developers/fund-data',
  '/developers/member-data',
  '/developers/scopes',
  '/developers/errors',
  '/developers/xml',
  '/developers/changes',
]

const COPY_CODE = readFileSync(
  new URL('../../../src/extensions/developers/copy-code.js', import.meta.url),
  'utf8',
)
const COPY_HASH = createHash('sha256').update(COPY_CODE).digest('base64')

const configPath = (name: string): string =>
  fileURLToPath(new URL(`../../../config/${name}`, import.meta.url))

const get = (
  service: Pick<StartedPostern, 'authUrl'>,
  path: string,
  init: RequestInit = {},
): Promise<Response> => fetch(`${service.authUrl}${path}`, init)

const textAt = async (service: StartedPostern, path: string): Promise<string> =>
  (await get(service, path)).text()

type Changed = Partial<Configuration> & { readonly developers?: unknown }

const changed = (change: (configuration: Configuration) => Changed) => ({
  change: (configuration: Configuration): Configuration => ({ ...configuration, ...change(configuration) }),
})

describe('C11.4 the developer pages', () => {
  /** Puts a configuration in force in the service of these tests. */
  const replaced = replacedService({ keeps: 'nothing' })
  let service: StartedPostern

  beforeAll(async () => {
    service = await startPostern({ keeps: 'nothing' })
  })
  afterAll(async () => {
    await service.close()
  })

  it('C11.4 are served as HTML that nothing may frame, and whose policy admits one script of ours by its hash', async () => {
    for (const path of PATHS) {
      const answer = await get(service, path)
      const { headers } = answer
      expect([path, answer.status]).toEqual([path, 200])
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(headers.get('cache-control')).toBe('public, max-age=300')
      expect(headers.get('content-security-policy')).toBe(
        `default-src 'none'; style-src 'self'; img-src 'self'; script-src 'sha256-${COPY_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
      )
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('set-cookie')).toBeNull()
      const [text = '', ...scripts] = (await answer.text()).split(`<script>${COPY_CODE}</script>`)
      expect(scripts).toHaveLength(1)
      expect(text + scripts.join('')).not.toMatch(/<script|<form|<input|style=|\son\w+=/)
      expect(text.match(/<h1>/g)).toHaveLength(1)
      expect([path, text.includes('{{')]).toEqual([path, false])
    }
  })

  it('C11.4 answers HEAD as GET without the page, and any other method 405 with Allow', async () => {
    for (const path of PATHS) {
      const [whole, head, other] = await Promise.all([
        get(service, path),
        get(service, path, { method: 'HEAD' }),
        get(service, path, { method: 'POST', body: 'x=1' }),
      ])
      expect([head.status, head.headers.get('etag')]).toEqual([200, whole.headers.get('etag')])
      expect(head.headers.get('content-length')).toBe(String((await whole.arrayBuffer()).byteLength))
      expect(await head.text()).toBe('')
      expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    }
  })

  it('C11.4 answers 304 to whoever has the page', async () => {
    for (const path of PATHS) {
      const tag = (await get(service, path)).headers.get('etag') ?? ''
      const again = await get(service, path, { headers: { 'if-none-match': tag } })
      expect([path, again.status, again.headers.get('etag')]).toEqual([path, 304, tag])
      expect(await again.text()).toBe('')
    }
  })

  it('C11.4 leads only to pages and parts of pages that there are', async () => {
    const texts = new Map(
      await Promise.all(PATHS.map(async (path) => [path, await textAt(service, path)] as const)),
    )
    const styles = new Set<string>()
    for (const [page, text] of texts)
      for (const [, href = ''] of text.matchAll(/href="([^"]+)"/g)) {
        if (href.startsWith('/connect/assets/')) styles.add(href)
        if (!/^(#|\/developers)/.test(href)) continue
        const [path = '', anchor] = href.split('#')
        const target = texts.get(path === '' ? page : path)
        expect([page, href, target !== undefined]).toEqual([page, href, true])
        if (anchor !== undefined) expect(target).toContain(`id="${anchor}"`)
      }
    expect(styles.size).toBe(2)
    for (const href of styles)
      expect((await get(service, href)).headers.get('content-type')).toBe('text/css; charset=utf-8')
  })

  it('C11.4 are 404 as any unknown path where they are off, which is the default', async () => {
    const off = await replaced({ ...changed(() => ({ developers: 'off' })) })
    const unknown = await get(off, '/developer')
    for (const path of [...PATHS, '/connect/assets/developers.css']) {
      const answer = await get(off, path)
      expect([path, answer.status]).toEqual([path, unknown.status])
      expect(await answer.json()).toEqual({
        Errors: [expect.objectContaining({ Code: 'API_NOT_FOUND' })],
        Data: {},
      })
    }
    const file = configFiles({ 'my.yaml': 'areas: {}\nactions: []\nbackends: {}\n' })('my.yaml')
    expect(SETTINGS.read(file, {}).configuration).toMatchObject({ developers: 'off' })
  })

  it('C11.4 tells nothing of a hidden area, nor of scope values that only it needs', async () => {
    const hidden = await replaced(changed(() => ({ openapi: { hide: ['member-data'] } })))
    expect((await get(hidden, '/developers/member-data')).status).toBe(404)
    for (const path of PATHS.filter((each) => !each.endsWith('member-data'))) {
      const text = await textAt(hidden, path)
      expect([path, /member-data|member-detail|fund\.member/.exec(text)]).toEqual([path, null])
    }
    expect(await textAt(hidden, '/developers/fund-data')).toContain('fund-list')
  })

  it('C11.4 tells of declared parameters, and where `Data` may be empty', async () => {
    const list = {
      parameters: { state: { enum: ['open', 'a b'], required: true, description: 'Which <ones>' } },
      examples: { few: { query: { state: 'a b' } } },
      data: { type: 'object', properties: { Name: { type: 'string' } }, required: ['Name'] },
    } as const
    const told = await replaced({
      ...{ config: 'upstream.yaml', environment: { UPSTREAM_URL: 'http://127.0.0.1:1' } },
      ...changed(({ actions }) => ({
        developers: 'on',
        actions: actions.map((action) =>
          action.action === 'fund-list'
            ? { ...action, methods: { GET: { ...action.methods['GET']!, ...list } } }
            : action,
        ),
      })),
    })
    const text = await textAt(told, '/developers/fund-data')
    expect(text).toContain('<code>Data</code> may be empty')
    expect(text).toMatch(/<code>state<\/code>[^<]*Which &lt;ones&gt;/)
    expect(
      codeBlocks(text)
        .map((block) => block.text)
        .join('\n'),
    ).toContain('?state=a%20b')
  })

  it('C11.4 gives an area that is called as another page an address of its own', async () => {
    const named = await replaced(
      changed(({ areas, actions }) => ({
        areas: { ...areas, errors: areas['fund-data']! },
        actions: actions.map((action) =>
          action.action === 'fund-list' ? { ...action, area: 'errors' } : action,
        ),
      })),
    )
    expect(await textAt(named, '/developers/errors')).toContain('API_NOT_AUTHORISED')
    expect(await textAt(named, '/developers/areas/errors')).toContain(
      '/api/1.0/b/{businessCode}/errors/fund-list',
    )
    expect(await textAt(named, '/developers')).toContain('href="/developers/areas/errors"')
  })

  it('C11.4 T6 shows whatever a configuration says as text, also in commands', async () => {
    const evil = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;$(id)\`id\``
    const told = await replaced(
      changed(({ actions, areas, scopes, ...rest }) => ({
        scopes: { ...scopes, 'fund.read': { ...scopes['fund.read']!, description: evil } },
        areas: { ...areas, 'fund-data': { ...areas['fund-data']!, description: evil } },
        openapi: { title: evil, description: evil, contact: { url: `https://help.test/${evil}` } },
        developers: { sample: { ...sampleLogin({ actions, areas, scopes, ...rest }), password: evil } },
        actions: actions.map((action) => ({
          ...action,
          methods: Object.fromEntries(
            Object.entries(action.methods).map(([method, operation]) => [
              method,
              {
                ...operation,
                data: { type: 'object' as const },
                summary: evil,
                description: evil,
                examples: { one: { summary: evil, data: { a: evil } } },
              },
            ]),
          ),
        })),
      })),
    )
    for (const path of PATHS) {
      const text = await textAt(told, path)
      expect([path, /<script>(?!\/\/ Adds)|<img src=x|href="[^"]*'>/.exec(text)]).toEqual([path, null])
    }
    // For a shell, the password is one word in single quotes.
    const [token] = codeBlocks(await textAt(told, '/developers'))
    expect(token?.text).toContain(`--data-urlencode 'password=${evil.replaceAll("'", `'\\''`)}'`)
  })

  it('C11.4 answers 500 where a page cannot be made, tells nothing of why, and makes it when it can', async () => {
    let isBroken = false
    // The first page that is made reads the login first.
    const sample = {
      ...{ client: 'acme-books', secret: 'acme-books-secret', username: 'alice', password: 'alice-password' },
      get business(): string {
        if (isBroken) {
          isBroken = false
          throw new Error('the heart of the matter')
        }
        return 'ACME'
      },
    }
    const broken = await replaced(changed(() => ({ developers: { sample } })))
    isBroken = true
    const [page, other] = await Promise.all(
      ['/developers/fund-data', '/developers/member-data'].map((path) => get(broken, path)),
    )
    expect([page?.status, other?.status]).toEqual([500, 200])
    expect(page?.headers.get('cache-control')).toBe('no-store')
    expect(page?.headers.get('content-security-policy')).toMatch(/^default-src 'none'/)
    expect(await page?.text()).not.toContain('heart')
    expect(broken.log().filter(({ level }) => level === 'error')).not.toEqual([])
    expect((await get(broken, '/developers/fund-data')).status).toBe(200)
    expect(await textAt(broken, '/developers/fund-data')).toContain('Harbour View')
  })

  it('C11.4 is open while identity is in maintenance', async () => {
    const closed = await postern({ keeps: 'nothing' })
    closed.switches.set([{ scope: { kind: 'identity' }, retryAfter: 9 }])
    expect((await get(closed, '/connect/account')).status).toBe(503)
    expect((await get(closed, '/developers')).status).toBe(200)
  })

  it('C11.4 tells the deployment’s own addresses, and asks to replace what it does not know', async () => {
    const plain = await replaced(changed(() => ({ developers: 'on', openapi: 'off' })))
    const text = await textAt(plain, '/developers')
    expect(text).toContain(`${plain.authUrl}/connect/authorize`)
    expect(text).toContain('-u CLIENT_ID:CLIENT_SECRET')
    expect(text).not.toMatch(/acme-books|openapi\.json/)
  })

  it('C11.4 tell the same where `openapi: off` keeps the document unserved', async () => {
    const document = '/.well-known/openapi.json'
    const served = await replaced()
    expect((await get(served, document)).status).toBe(200)
    const bodyOf = (page: string): string => page.slice(page.indexOf('<main'))
    const told = bodyOf(await textAt(served, '/developers/fund-data'))
    const off = await replaced(changed(() => ({ openapi: 'off' })))
    expect((await get(off, document)).status).toBe(404)
    expect(bodyOf(await textAt(off, '/developers/fund-data'))).toBe(told)
  })

  it('C11.4 tells of every operation where types of the path lead to several', async () => {
    const told = await replaced(
      changed(({ actions }) => ({
        actions: actions.flatMap((each) =>
          each.action === 'fund-list'
            ? ['item/{id:uuid}', 'item/{number:integer}'].map((action) => ({ ...each, action }))
            : [each],
        ),
      })),
    )
    const text = await textAt(told, '/developers/fund-data')
    for (const name of ['id', 'number']) {
      expect(text).toContain(`id="get-business-fund-data-item-${name}"`)
      expect(text).toContain(`/api/1.0/b/{businessCode}/fund-data/item/{${name}}`)
    }
    expect(text).toContain('A whole number from 0.')
  })

  it('C11.4 lists the types of an operation of its own form, also in a report-only area', async () => {
    const told = await replaced({
      ...{ config: 'upstream.yaml', environment: { UPSTREAM_URL: 'http://127.0.0.1:1' } },
      ...changed(({ actions, areas }) => ({
        developers: 'on',
        areas: { ...areas, 'fund-data': { ...areas['fund-data']!, mode: 'report-only' as const } },
        actions: actions.map((each) =>
          each.action === 'fund-list'
            ? {
                ...each,
                methods: {
                  GET: { scopes: { any: ['fund.read'] }, versions: [1], items: {}, produces: ['text/csv'] },
                },
              }
            : each,
        ),
      })),
    })
    const text = await textAt(told, '/developers/fund-data')
    expect(text).toContain('without a frame: <code>text/csv</code>')
    expect(text).not.toContain('*/*')
  })

  it('C11.4 has every text of the table of faults that a client can read', async () => {
    const page = unescaped(await textAt(service, '/developers/errors'))
    const missing = Object.entries(FAULTS).filter(([, { text }]) => !page.includes(text))
    expect(missing.map(([code]) => code)).toEqual(['client_gone'])
    for (const { oauth, wire } of Object.values<FaultRow>(FAULTS)) {
      expect(page).toContain(wire)
      if (oauth !== 'server_error') expect(page).toContain(oauth)
    }
  })

  it('C11.4 are refused by the check in a sidecar, and a login for everybody is warned of', async () => {
    const file = configFiles({
      'sidecar.yaml': `extends: ${configPath('sidecar.yaml')}\ndevelopers: on\n`,
      'sample.yaml': `extends: ${configPath('demo.yaml')}\ndemo: false\n`,
    })
    const problemsOf = async (name: string) =>
      (await SETTINGS.check(file(name), {})).list
        .filter(({ path }) => path[0] === 'developers')
        .map(({ severity, path, message }) => `${severity} ${path.join('.')} ${message}`)
    expect(await problemsOf('sidecar.yaml')).toEqual([
      'error developers has no use in a sidecar, which serves no pages',
    ])
    expect(await problemsOf('sample.yaml')).toEqual([
      'warning developers.sample shows a client’s secret and a user’s password to everybody',
    ])
  })
})

describe('C11.4 the search of developer pages', () => {
  const replaced = replacedService({ keeps: 'nothing' })

  /** Areas with one operation each, besides the demo's two. */
  const withAreas = (count: number) =>
    changed(({ actions, areas }) => {
      const names = Array.from({ length: count - 2 }, (_, index) => `ledger-${index + 1}`)
      const [first] = actions
      return {
        areas: {
          ...areas,
          ...Object.fromEntries(
            names.map((name, index) => [
              name,
              { ...areas['fund-data']!, description: `Accounts of Region ${index + 1}.` },
            ]),
          ),
        },
        actions: [...actions, ...names.map((area) => ({ ...first!, area }))],
      }
    })
  const statusOf = (page: string): string | undefined =>
    unescaped(/<p role="status">([^<]*)</.exec(page)?.[1] ?? '')
  const find = (text: string): string => `/developers?${new URLSearchParams({ find: text }).toString()}`

  it('C11.4 is not there with 15 areas, and a query changes nothing', async () => {
    const few = await replaced(withAreas(15))
    const page = await textAt(few, '/developers')
    expect(page.match(/href="\/developers\/ledger-/g)).toHaveLength(13)
    expect(page).not.toMatch(/<form|<input/)
    expect(await textAt(few, find('region'))).toBe(page)
  })

  it('C11.4 is on every page with 16 areas, and finds by name, description, summary and code', async () => {
    const many = await replaced(withAreas(16))
    for (const path of [...PATHS, '/developers/ledger-1'])
      expect([
        path,
        (await textAt(many, path)).match(/<form class="search" method="get" action="\/developers"/g)?.length,
      ]).toEqual([path, 1])
    expect(statusOf(await textAt(many, find('member-data')))).toBe('Found for “member-data”: 1 area.')
    const described = await textAt(many, find('  REGION   ledger-1 '))
    expect(statusOf(described)).toBe('Found for “REGION   ledger-1”: 6 areas.')
    expect(described).toContain('href="/developers/ledger-14"')
    const byCode = await textAt(many, find('member-detail'))
    expect(statusOf(byCode)).toBe('Found for “member-detail”: 2 operations in 1 area.')
    expect(byCode).toMatch(/href="\/developers\/member-data#[A-Za-z-]+"/)
    expect(statusOf(await textAt(many, find('list the FUNDS')))).toMatch(
      /^Found for “list the FUNDS”: \d+ operations in \d+ areas\.$/,
    )
  })

  it('C11.4 says so where nothing is found, and shows the search as text', async () => {
    const many = await replaced(withAreas(16))
    const page = await textAt(many, find('"><script>alert(1)</script>'))
    expect(statusOf(page)).toContain('Nothing was found for “"><script>alert(1)</script>”.')
    expect(page).toContain('value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"')
    expect(page).not.toContain('<script>alert')
    expect(statusOf(await textAt(many, find('\u202e')))).toContain('“\u2068\u2069”')
  })

  it('C11.4 keeps the pages as they are: an empty search is the first page, with its tag', async () => {
    const many = await replaced(withAreas(16))
    const first = await get(many, '/developers')
    for (const path of ['/developers?', find(' '), '/developers?other=1'])
      expect([path, (await get(many, path)).headers.get('etag')]).toEqual([path, first.headers.get('etag')])
    const found = await get(many, find('fund'))
    const tag = found.headers.get('etag') ?? ''
    expect(tag).not.toBe(first.headers.get('etag'))
    expect((await get(many, find('fund'), { headers: { 'if-none-match': tag } })).status).toBe(304)
    expect(found.headers.get('content-security-policy')).toBe(first.headers.get('content-security-policy'))
    expect(first.headers.get('cache-control')).toBe('public, max-age=300')
    expect(found.headers.get('cache-control')).toBe('private, max-age=300')
    const headed = await get(many, find('fund'), { method: 'HEAD' })
    expect([headed.status, headed.headers.get('etag'), await headed.text()]).toEqual([200, tag, ''])
  })

  it('C11.4 takes the first of several searches and 100 characters of it, and refuses one that cannot be read', async () => {
    const many = await replaced(withAreas(16))
    const tagOf = async (path: string): Promise<string | null> => (await get(many, path)).headers.get('etag')
    expect(await tagOf(`${find('fund')}&find=region`)).toBe(await tagOf(find('fund')))
    expect(await tagOf(find('x'.repeat(5000)))).toBe(await tagOf(find('x'.repeat(100))))
    for (const unread of ['%zz', '%ff', '%ed%a0%80']) {
      const answer = await get(many, `/developers?find=${unread}`)
      expect([unread, answer.status]).toEqual([unread, 400])
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(await answer.text()).toContain('<h1>')
    }
  })

  it('C11.4 lists the first hundred operations, and tells how many there are', async () => {
    const many = await replaced(withAreas(120))
    const page = await textAt(many, find('list'))
    const [, told = ''] = /: (\d+) operations in/.exec(statusOf(page) ?? '') ?? []
    expect(Number(told)).toBeGreaterThan(100)
    expect(statusOf(page)).toMatch(/ The first 100 are listed\.$/)
    expect(page.match(/<span class="method">/g)).toHaveLength(100)
  })
})

describe.each(SHIPPED.filter(([config]) => config !== 'sidecar.yaml'))(
  'C11.4 the developer pages of %s, which is shipped',
  (config, environment) => {
    const replaced = replacedService({ keeps: 'nothing' })

    it('C11.4 are all made, and lead to each other', async () => {
      // What an example's module reads of the environment of its process.
      vi.stubEnv('FUNDS_SIGNING_KEY', 'a key of the tests')
      const shipped = await replaced({ config, environment, ...changed(() => ({ developers: 'on' })) })
      const met = new Set(['/developers'])
      // A set gives what is added while it is read.
      for (const path of met) {
        const page = await get(shipped, path)
        const text = await page.text()
        expect([path, page.status, text.includes('{{')]).toEqual([path, 200, false])
        for (const [, next = ''] of text.matchAll(/href="(\/developers[^"#]*)/g)) met.add(next)
      }
      const areas = shipped.configuration.actions.map(({ area }) => `/developers/${area}`)
      const reference = ['scopes', 'errors', 'xml', 'changes'].map((name) => `/developers/${name}`)
      expect(met).toEqual(new Set(['/developers', ...areas, ...reference]))
    })
  },
)
