import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkConfiguration } from '../../src/settings/check-configuration.ts'
import { readConfiguration, type Configuration } from '../../src/settings/configuration.ts'
import { configFiles } from '../support/config-files.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'

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

const configPath = (name: string): string => fileURLToPath(new URL(`../../config/${name}`, import.meta.url))

const get = (
  service: Pick<StartedPostern, 'authUrl'>,
  path: string,
  init: RequestInit = {},
): Promise<Response> => fetch(`${service.authUrl}${path}`, init)

const textAt = async (service: StartedPostern, path: string): Promise<string> =>
  (await get(service, path)).text()

const changed = (change: (configuration: Configuration) => Partial<Configuration>) => ({
  change: (configuration: Configuration): Configuration => ({ ...configuration, ...change(configuration) }),
})

describe('C11.4 the developer pages', () => {
  let service: StartedPostern

  beforeAll(async () => {
    service = await startPostern()
  })
  afterAll(async () => {
    await service.close()
  })

  it('C11.4 are served as HTML that nothing may frame and that runs nothing', async () => {
    for (const path of PATHS) {
      const answer = await get(service, path)
      const { headers } = answer
      expect([path, answer.status]).toEqual([path, 200])
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(headers.get('cache-control')).toBe('public, max-age=300')
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      )
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('set-cookie')).toBeNull()
      const text = await answer.text()
      expect(text).not.toMatch(/<script|<form|<input|style=|\son\w+=/)
      expect(text.match(/<h1>/g)).toHaveLength(1)
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
    const off = await postern({ ...changed(() => ({ developers: 'off' })) })
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
    expect(readConfiguration(file, {}).configuration?.developers).toBe('off')
  })

  it('C11.4 are refused by the check in a sidecar, and a login for everybody is warned of', async () => {
    const file = configFiles({
      'sidecar.yaml': `extends: ${configPath('sidecar.yaml')}\ndevelopers: on\n`,
      'sample.yaml': `extends: ${configPath('demo.yaml')}\ndemo: false\n`,
    })
    const problemsOf = async (name: string) =>
      (await checkConfiguration(file(name), {})).problems
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
