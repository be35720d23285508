import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { openBrowser } from '../support/browser.ts'
import { startBrowserClient } from '../support/clients/browser-client.ts'
import { CLIENTS, startClient, type ClientProgram } from '../support/clients/start-client.ts'
import { Visitor } from '../support/clients/visitor.ts'
import { freePort } from '../support/free-port.ts'
import { needing } from '../support/machine.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'

/** Clients that others wrote, each in a program whose settings config/clients.md shows. */

const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'

function withClient(
  id: string,
  change: Partial<Configuration['directory']['clients'][string]>,
  { directory, ...rest }: Configuration,
): Configuration {
  const client = { ...directory.clients[id]!, ...change }
  return { ...rest, directory: { ...directory, clients: { ...directory.clients, [id]: client } } }
}

const startFor = (program: ClientProgram, origin: string): Promise<StartedPostern> =>
  postern({
    change: (configuration) => {
      const { answerScope, requireBinding = true, requirePkce = requireBinding, strictRfc6749 } = program
      const redirectUris = [`${origin}${program.callback}`]
      const held = program.profile && {
        profile: program.profile,
        secrets: [],
        jwksUri: `${origin}/jwks.json`,
      }
      const change = {
        redirectUris,
        requireBinding,
        requirePkce,
        ...(answerScope && { answerScope }),
        ...(strictRfc6749 && { strictRfc6749 }),
        ...held,
      }
      return withClient('ledgerline', change, configuration)
    },
  })

describe('a client that others wrote', () => {
  for (const [name, program] of Object.entries(CLIENTS))
    it(`C6.2 ${name} logs a user in, and calls the API`, needing(...program.needs), async () => {
      const port = await freePort()
      const origin = `http://127.0.0.1:${port}`
      const { authUrl, baseUrl } = await startFor(program, origin)
      const started = await startClient(program, { port, issuer: authUrl, baseUrl })
      onTestFinished(() => started.stop())
      const { status, text } = await new Visitor(origin, authUrl).logIn(program.login)
      expect({ status, text }).toEqual({ status: 200, text: expect.stringContaining('"SUPER1"') })
      expect(text).toContain(program.shows ?? 'Alice Beatrice Arden')
    })

  it(
    'C6.2 oidc-client-ts logs a user in by a popup, and calls the API from the page',
    needing('chromium', 'clients of npm'),
    async () => {
      const site = await startBrowserClient()
      onTestFinished(site.close)
      const { authUrl, baseUrl } = await postern({
        change: ({ server, ...rest }) =>
          withClient(
            'pocketbooks',
            { redirectUris: [`${site.origin}/callback`] },
            { ...rest, server: { ...server, cors: corsFor(site.origin) } },
          ),
      })
      site.aimAt(authUrl, `${baseUrl}${FUNDS}`)
      const { close, context } = await openBrowser()
      onTestFinished(close)
      const page = await context.newPage()
      await page.goto(site.origin)
      const opened = page.waitForEvent('popup')
      await page.getByRole('button', { name: 'Log in' }).click()
      const popup = await opened
      await popup.getByLabel('User name').fill('alice')
      await popup.getByLabel('Password', { exact: true }).fill('alice-password')
      await popup.getByRole('button', { name: 'Sign in' }).click()
      await popup.getByLabel('Acme Advisory').check()
      await popup.getByRole('button', { name: 'Allow', exact: true }).click()
      await page.waitForFunction('document.querySelector("#result").textContent !== ""')
      const shown = await page.locator('#result').innerText()
      expect(JSON.parse(shown)).toMatchObject({ name: 'Alice Beatrice Arden', funds: { Data: {} } })
    },
  )
})

const corsFor = (origin: string): NonNullable<Configuration['server']['cors']> => ({
  origins: [origin],
  methods: ['GET'],
  headers: ['Authorization'],
  exposeHeaders: [],
  maxAge: 600_000,
})

describe('config/clients.md', () => {
  const page = readFileSync(new URL('../../config/clients.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/^```\w+ ([\w.-]+)\n(.*?)^```/gms)].map(([, file = '', text = '']) => ({
    file,
    text,
  }))
  const programs = [...Object.values(CLIENTS).map(({ file }) => file), 'oidc-client-ts.html']

  it('shows settings of each client that is run, and of no other', () => {
    expect(new Set(blocks.map(({ file }) => file))).toEqual(new Set(programs))
  })

  it.each(blocks)('shows what the tests run: $file', ({ file, text }) => {
    const program = readFileSync(new URL(`../support/clients/${file}`, import.meta.url), 'utf8')
    const plain = (lines: string): string => lines.replaceAll(/^[ \t]+/gm, '')
    expect(plain(program)).toContain(plain(text))
  })

  it('names what must be set in Postern, where it is set', () => {
    const section = (name: string): string => page.split(`\n## ${name}\n`)[1]?.split('\n## ')[0] ?? ''
    for (const [name, program] of Object.entries(CLIENTS)) {
      const { answerScope, profile, requireBinding, requirePkce, strictRfc6749 } = program
      const told = section(name)
      expect([name, told.includes('`strictRfc6749: true`')]).toEqual([name, strictRfc6749 === true])
      expect([name, told.includes('`requirePkce: false`')]).toEqual([name, requirePkce === false])
      expect([name, told.includes('`requireBinding: false`')]).toEqual([name, requireBinding === false])
      expect([name, told.includes('`answerScope: asked`')]).toEqual([name, answerScope === 'asked'])
      expect([name, told.includes('profile: fapi2')]).toEqual([name, profile === 'fapi2'])
    }
  })
})
