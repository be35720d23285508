import { describe, expect, it } from 'vitest'
import { SnapshotPlaces } from '../../../src/identity/directory/records/places.ts'
import { readCode } from '../../../src/base/config/scopes/scope-token.ts'
import type { client } from '../../support/identity-under-test.ts'
import { user } from '../../support/identity-under-test.ts'
import {
  answerIn,
  app,
  authorizePath,
  type BrowserAnswer,
  CALLBACK,
  openFlow,
  partner,
  UserAgent,
} from '../../support/user-agent.ts'

/** Businesses B01, B02, … of one user and one client. */
function openWith(count: number, more: Partial<ReturnType<typeof client>> = {}) {
  const codes = Array.from({ length: count }, (_, at) => `B${String(at + 1).padStart(2, '0')}`)
  const businesses = codes.map((text, at) => ({
    code: readCode(text)!,
    name: at === 3 ? 'Harbour Zürich' : at === 4 ? `Long ${'name '.repeat(20)}` : `Firm ${text}`,
    funds: 'any' as const,
  }))
  const access = new Map(codes.map((text) => [text, { role: 'Clerk', scopes: ['fund.read'] }]))
  return openFlow({
    clients: [{ ...partner, businesses: codes, ...more }],
    users: [user('alice', { access })],
    deps: { places: new SnapshotPlaces(new Map(businesses.map((each) => [each.code, each]))) },
  })
}

const SCOPE = 'openid fund.read target:b'
const ask = async (count: number, more = {}) => {
  const agent = new UserAgent(openWith(count))
  await agent.logIn(await agent.get(authorizePath({ scope: SCOPE })))
  return { agent, seen: await agent.get(authorizePath({ scope: SCOPE, ...more })) }
}
const offered = ({ text }: BrowserAnswer): string[] =>
  [...text.matchAll(/name="business"[^>]*?value="(\w+)"/gs)].map((match) => match[1] ?? '')
const linkTo = ({ text }: BrowserAnswer, words: string): string =>
  new RegExp(`<a href="([^"]*)">${words}</a>`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''

describe('C6.2.2 many businesses to choose from', () => {
  it('have a search field from eight on', async () => {
    expect((await ask(7)).seen.text).not.toContain('name="find"')
    expect((await ask(8)).seen.text).toContain('name="find"')
  })

  it('are shown 20 at a time, by name, with their codes', async () => {
    const { agent, seen } = await ask(45)
    expect(offered(seen)).toHaveLength(20)
    expect(seen.text).toMatch(/1 to 20 of 45 businesses/)
    expect(seen.text).toContain('<span class="code">B01</span>')
    expect(linkTo(seen, 'Previous businesses')).toBe('')
    const second = await agent.get(linkTo(seen, 'More businesses'))
    const third = await agent.get(linkTo(second, 'More businesses'))
    expect(offered(third)).toHaveLength(5)
    expect(linkTo(third, 'More businesses')).toBe('')
    expect(offered(await agent.get(linkTo(third, 'Previous businesses')))).toEqual(offered(second))
    expect(new Set([seen, second, third].flatMap(offered)).size).toBe(45)
  })

  it.each([
    ['b17', ['B17']],
    ['  ZÜRICH harb ', ['B04']],
    ['firm b1', ['B10', 'B11', 'B12', 'B13', 'B14', 'B15', 'B16', 'B17', 'B18', 'B19']],
    ['nothing such', []],
    ['', undefined],
  ])('are searched by words of name and code: %j', async (find, codes) => {
    const { seen } = await ask(45, { find })
    expect(seen.text.includes('value="allow"')).toBe(codes?.length !== 0)
    if (codes === undefined) expect(offered(seen)).toHaveLength(20)
    else expect(offered(seen)).toEqual(codes)
    expect(seen.text).not.toContain(' checked')
  })

  it.each([
    { from: '44' },
    { from: '999999' },
    { from: '-1' },
    { from: 'x' },
    { find: '<b>"' },
    { find: 'a'.repeat(5000) },
  ])('take any %j', async (params) => {
    const { seen } = await ask(45, params)
    expect(seen.status).toBe(200)
    expect(seen.text).not.toContain('<b>"')
  })

  it('begin again where there are no longer as many', async () => {
    const { seen } = await ask(45, { from: '60' })
    expect(offered(seen)).toHaveLength(20)
    expect(seen.text).toContain('1 to 20 of 45 businesses')
  })

  it('searches in a form of its own, so that Enter in the field allows nothing', async () => {
    const { agent, seen } = await ask(45)
    const [, search = ''] = /<form\s+class="search"([^]*?)<\/form>/.exec(seen.text) ?? []
    expect(search).toContain('method="get"')
    expect(search).not.toMatch(/name="(csrf|decision)"/)
    const fields = [...search.matchAll(/name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value,
    ])
    const query = new URLSearchParams([...(fields as [string, string][]), ['find', 'b30']])
    expect(
      offered(await agent.get(`/connect/authorize?${query.toString().replaceAll('%26amp%3B', '%26')}`)),
    ).toEqual(['B30'])
  })

  it('a business of another page may be chosen, and a forgotten choice keeps the search', async () => {
    const { agent, seen } = await ask(45, { find: 'b1' })
    const again = await agent.submit(seen, { decision: 'allow' })
    expect([again.status, offered(again)]).toEqual([422, offered(seen)])
    expect(answerIn(await agent.submit(seen, { decision: 'allow', business: 'B45' }))['code']).toBeDefined()
  })

  it('a name that is cut off is offered whole', async () => {
    const { seen } = await ask(8)
    expect(seen.text).toMatch(/<summary>Show the whole name<\/summary>\s*<p><bdi>Long name name/)
    expect(seen.text.match(/<details/g)).toHaveLength(1)
    const named = await ask(8, { scope: 'openid fund.read target:b/B05' })
    expect(named.seen.text).toMatch(
      /<h2>At Long name[^<]+…<\/h2>\s*<details>[^]*?<p><bdi>(Long name (name )+)<\/bdi><\/p>/,
    )
  })
})

describe('C6.2.2 the consent page', () => {
  const pageOf = async (more: Partial<ReturnType<typeof client>>, params = {}) => {
    const agent = new UserAgent(openFlow({ clients: [{ ...partner, ...more }, app] }))
    return (await agent.logIn(await agent.get(authorizePath(params)))).text
  }

  it('asks for the business first, then tells what is asked for', async () => {
    const text = await pageOf({}, { scope: 'openid profile fund.read' })
    const places = ['Which business', 'In the business you choose', 'About you', 'The data goes to'].map(
      (words) => text.indexOf(words),
    )
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(places[0]).toBeGreaterThan(0)
  })

  it('tells in words what lets the client change data', async () => {
    const text = await pageOf({}, { scope: 'openid fund.maintain target:b/ACME' })
    expect(text).toMatch(/<li class="changes">[^<]+<small>changes data<\/small>/)
    expect(await pageOf({}, { scope: 'openid fund.read target:b/ACME' })).not.toContain('changes data')
  })

  it('names the host that the data goes to, and the client’s own pages in windows of their own', async () => {
    const text = await pageOf({
      policyUri: 'https://app.test/privacy',
      tosUri: 'https://app.test/terms?a=1&b=2',
    })
    expect(text).toContain('The data goes to app.test.')
    expect(text).toMatch(/<a href="https:\/\/app.test\/privacy" target="_blank" rel="noopener noreferrer"/)
    expect(text).toContain('href="https://app.test/terms?a=1&amp;b=2"')
    expect(await pageOf({})).not.toContain('Privacy policy')
  })

  it('names that host whole, however long it is: its end says whose it is', async () => {
    const host = `login.bank.example.${'very-'.repeat(10)}long.app.test`
    const redirect = `https://${host}/callback`
    const text = await pageOf({ redirectUris: [redirect] }, { redirect_uri: redirect })
    expect(text).toContain(`The data goes to ${host}.`)
  })

  it('names no host of an app on the person’s device', async () => {
    const params = { client_id: 'pocketbooks', redirect_uri: 'com.example.pocketbooks:/callback' }
    expect(await pageOf({}, params)).toContain('Pocketbooks is an app on your device')
  })

  it('keeps a long or turned name of a client from taking the page over', async () => {
    const text = await pageOf({ name: `Ledger ${'line '.repeat(40)}` })
    expect(text).toMatch(/<h1>Allow Ledger line[^<]{1,60}… to connect\?<\/h1>/)
    expect(text).toContain('Show the whole name')
    expect(await pageOf({ name: 'abc\u202Edef' })).toContain('Allow \u2068abcdef\u2069 to connect?')
  })
})

it('C6.2.2 the view of the picker does not reach the client', async () => {
  const { agent, seen } = await ask(8, { find: 'b01' })
  const { location } = await agent.submit(seen, { decision: 'allow', business: 'B01' })
  expect(location?.href.startsWith(CALLBACK)).toBe(true)
  expect([...(location?.searchParams.keys() ?? [])].sort()).toEqual(['code', 'iss', 'state'])
})
