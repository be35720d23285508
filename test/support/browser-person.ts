import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { atEnd } from './shared.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { openBrowser, openClientPage, type BrowserOptions, type ClientPage } from './browser.ts'
import { startPostern, type StartedPostern } from './start-postern.ts'

/** S256 of `VERIFIER` (RFC 7636, appendix B). */
export const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
export const EVERYTHING = 'openid profile email offline_access fund.read business.fund.list target:b'

type Directory = Configuration['directory']

/** What stands at the foot of the pages, and under the sign-in form. */
const FOOT = {
  forgotten:
    'Forgotten your password? Ring the help desk on +61 2 5550 1234, and have your staff card with you.',
  help: 'https://help.example/sign-in',
  contact: 'support@example.com',
  footer: 'Acme Advisory Pty Ltd, 1 Example Street, Sydney NSW 2000',
}

/** @see FOOT */
export const { forgotten: FORGOTTEN } = FOOT

/** A Postern, and a client whose pages it leads back to. */
export interface Scene {
  readonly postern: StartedPostern
  readonly client: ClientPage
  readonly close: () => Promise<void>
}

/** Somebody whom an operator has added. @param password without one, none fits until a link sets one */
export async function addUser(scene: Scene, username: string, password?: string): Promise<void> {
  const access = { ACME: 'Administrator' }
  const claims = {
    name: 'Ann Elizabeth Ashe-Worthington',
    email: `${username}@long-named-accountants.example.com`,
  }
  const added = { username, customers: ['acme-books'], access, claims }
  await askOperator(scene, '/users', { ...added, ...(password !== undefined && { password }) })
}

/** A link by which somebody sets their password. */
export const linkFor = async (scene: Scene, username: string): Promise<string> =>
  String((await askOperator(scene, `/users/${username}/link`, {}))['link'])

async function askOperator({ postern }: Scene, path: string, body: object): Promise<Record<string, unknown>> {
  const token = readFileSync(join(postern.data, 'admin-token'), 'utf8').trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${postern.adminUrl}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Record<string, unknown>
}

/** @param authUrl where people open the pages, if a proxy stands before them */
export async function openScene(authUrl?: string): Promise<Scene> {
  const client = await openClientPage()
  const postern = await startPostern({
    change: ({ server, ...rest }) =>
      withClientAt(
        { ...rest, server: { ...server, ...(authUrl !== undefined && { authUrl }) } },
        client.origin,
      ),
  })
  return {
    postern,
    client,
    close: async () => {
      await postern.close()
      await client.close()
    },
  }
}

/** So many that the consent page has a search field. */
const BRANCHES = Array.from({ length: 30 }, (_, index) => `BRANCH${index + 1}`)

const OFFICES = BRANCHES.map((code) => code.replace('BRANCH', 'OFFICE'))

const LONG_NAME = `Incorporated${'AndIncorporatedAgain'.repeat(4)} ${'of the other side of the river '.repeat(4)}`

/** Grace, who has access to all branches, and Heidi, to all offices, whose names are very long; with Alice's password. */
function withBranches({ users, businesses, ...directory }: Directory): Directory {
  const alice = users['alice']!
  const named = (codes: readonly string[], name: string) =>
    Object.fromEntries(codes.map((code) => [code, { name: `${name} ${code}`, funds: [] }]))
  const withAccess = (user: string, codes: readonly string[]) => ({
    ...alice,
    subject: `${user}-subject`,
    access: Object.fromEntries(codes.map((code) => [code, alice.access['ACME']!])),
  })
  return {
    ...directory,
    businesses: { ...businesses, ...named(BRANCHES, 'Acme'), ...named(OFFICES, LONG_NAME) },
    users: {
      ...users,
      grace: withAccess('grace', BRANCHES),
      heidi: withAccess('heidi', OFFICES),
    },
  }
}

function withClientAt(configuration: Configuration, origin: string): Configuration {
  const { identity } = configuration
  const directory = withBranches(configuration.directory)
  const ledgerline = {
    ...directory.clients['ledgerline']!,
    redirectUris: [`${origin}/callback`],
    postLogoutRedirectUris: [`${origin}/bye`],
    businesses: [...directory.clients['ledgerline']!.businesses, ...BRANCHES, ...OFFICES],
  }
  const longNamed = { ...ledgerline, name: LONG_NAME }
  return {
    ...configuration,
    identity: { ...identity, pages: { ...identity.pages, ...FOOT } },
    directory: { ...directory, clients: { ...directory.clients, ledgerline, 'long-named': longNamed } },
  }
}

/** A person: a browser of their own. */
export class Person {
  readonly page: Page
  readonly scene: Scene

  constructor(page: Page, scene: Scene) {
    this.page = page
    this.scene = scene
  }

  static async enter(scene: Scene, options: BrowserOptions = {}): Promise<Person> {
    const { close, context } = await openBrowser(options)
    atEnd(close)
    return new Person(context.pages()[0] ?? (await context.newPage()), scene)
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.scene.postern.authUrl}${path}`)
  }

  ask(params: Readonly<Record<string, string>> = {}): Promise<void> {
    const query = new URLSearchParams({
      client_id: 'ledgerline',
      redirect_uri: `${this.scene.client.origin}/callback`,
      response_type: 'code',
      scope: EVERYTHING,
      state: 'state-1',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...params,
    })
    return this.open(`/connect/authorize?${query.toString()}`)
  }

  async logIn(username = 'alice', password = `${username}-password`): Promise<void> {
    await this.page.getByLabel('User name').fill(username)
    await this.page.getByLabel('Password', { exact: true }).fill(password)
    await this.press('Sign in')
  }

  async press(name: string | RegExp): Promise<void> {
    await this.page
      .getByRole('button', { name, exact: typeof name === 'string' })
      .first()
      .click()
  }

  heading(): Promise<string> {
    return this.page.getByRole('heading', { level: 1 }).innerText()
  }

  async backAtClient(): Promise<URLSearchParams> {
    await this.page.waitForURL(`${this.scene.client.origin}/**`).catch(async (error: unknown) => {
      const shown = await this.page.locator('body').innerText()
      throw new Error(`the browser is not at the client but at ${this.page.url()}: ${shown}`, {
        cause: error,
      })
    })
    return this.scene.client.received()
  }
}
