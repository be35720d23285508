import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileIdentity } from '../../../src/identity/dependencies/schema.ts'
import { openFlow, authorizePath, UserAgent } from '../../support/user-agent.ts'

function withLogo(name: string, text = '<svg xmlns="http://www.w3.org/2000/svg"/>'): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-logo-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

describe('C6.2.3 the look of a deployment', () => {
  it('C6.2.3 name, logo and accent come from the configuration', async () => {
    const pages = { name: 'Acme & Sons', logo: withLogo('acme.svg'), timeZone: 'UTC', accent: '#0a7a4b' }
    const agent = new UserAgent(openFlow({ config: { pages } }))
    const page = await agent.get(authorizePath())
    expect(page.text).toContain('<title>Sign in · Acme &amp; Sons</title>')
    const logo = await agent.get(/<img src="([^"]+)"/.exec(page.text)?.[1] ?? '')
    expect([logo.status, logo.headers['Content-Type']]).toEqual([200, 'image/svg+xml'])
    expect(logo.headers['Content-Security-Policy']).toContain("default-src 'none'")
    expect(agent.service.identity.dependencies.theme.stylesheet.bytes.toString()).toContain(
      '--accent:#0a7a4b',
    )
  })

  it('C6.2.3 without a logo there is none to get', async () => {
    expect((await new UserAgent(openFlow()).get('/connect/assets/logo')).status).toBe(404)
  })

  it('C6.2.3 a stylesheet of other content has another address', () => {
    const hrefs = ['#0a7a4b', '#3a5bd0'].map(
      (accent) =>
        openFlow({ config: { pages: { name: 'x', accent, timeZone: 'UTC' } } }).identity.dependencies.theme
          .stylesheet.href,
    )
    expect(new Set(hrefs).size).toBe(2)
  })

  it.each([
    ['a file that is not there', '/nowhere/logo.svg', 'does not exist'],
    ['a file that is no picture', '/nowhere/logo.exe', 'expected an .svg'],
  ])('C6.2.3 %s is told at load', (_, logo, message) => {
    const problems = new Problems()
    const { config } = openFlow().deps
    compileIdentity({ ...config, pages: { ...config.pages, logo } }, problems)
    expect(problems.list).toMatchObject([{ path: ['identity', 'pages', 'logo'] }])
    expect(problems.list[0]?.message).toContain(message)
  })

  it('C6.2.3 paths stand below the issuer’s', async () => {
    const urls = { issuer: 'http://id.test/auth', api: 'http://api.test' }
    const agent = new UserAgent(openFlow({ deps: { urls } }))
    const page = await agent.get(`/auth${authorizePath()}`)
    expect(page.text).toContain('action="/auth/connect/login?')
    expect(page.text).toContain('href="/auth/connect/assets/postern.css?')
    expect((await agent.logIn(page)).text).toContain('Allow Ledgerline')
  })
})
