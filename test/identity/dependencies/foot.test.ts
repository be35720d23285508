import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { viewOf } from '../../../src/base/config/schema.ts'
import { nodeOf } from '../../../src/base/config/tree.ts'
import { load } from '../../../src/base/config/validate.ts'
import { compileIdentity } from '../../../src/identity/dependencies/schema.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'
import { authorizePath, openFlow, UserAgent } from '../../support/user-agent.ts'

/** What a deployment has written at the foot of its pages. */

const pagesWith = (more: object) => ({ ...openFlow().deps.config.pages, ...more })
const login = async (more: object): Promise<string> =>
  (await new UserAgent(openFlow({ config: { pages: pagesWith(more) } })).get(authorizePath())).text

describe('C6.2.3 the foot of every page', () => {
  it('C6.2.3 is not there where nothing is configured', async () => {
    expect(await login({})).not.toContain('<footer')
  })

  it('C6.2.3 has the link to help, and the line of the company as text', async () => {
    const text = await login({ help: 'https://help.test/?a=1&b=2', footer: 'Acme <Pty> Ltd' })
    expect(text).toContain('<a href="https://help.test/?a=1&amp;b=2">Help</a>')
    expect(text).toContain('Acme &lt;Pty&gt; Ltd')
  })

  it.each([
    ['support@acme.test', 'href="mailto:support@acme.test"'],
    ['+61 2 5550 (123)', 'href="tel:+6125550123"'],
    ['https://acme.test/contact', 'href="https://acme.test/contact"'],
    ['at the front desk', '<span>Contact: at the front desk</span>'],
    ['javascript:alert(1)', '<span>Contact: javascript:alert(1)</span>'],
  ])('C6.2.3 names the contact %s so that one can use it', async (contact, expected) => {
    expect(await login({ contact })).toContain(expected)
  })

  it('C6.2.3 stands on the page of an error too', async () => {
    const agent = new UserAgent(openFlow({ config: { pages: pagesWith({ contact: 'support@acme.test' }) } }))
    expect((await agent.get(authorizePath({ client_id: 'nobody' }))).text).toContain('mailto:support')
  })

  it('C6.2.3 a time zone that is none is told at load', () => {
    const told = (timeZone: string) => {
      const problems = new Problems()
      const { config } = openFlow().deps
      compileIdentity({ ...config, pages: { ...config.pages, timeZone } }, problems)
      return problems.list
    }
    expect(told('Mars/Olympus')).toMatchObject([{ path: ['identity', 'pages', 'timeZone'] }])
    for (const zone of ['UTC', 'Australia/Sydney']) expect(told(zone)).toEqual([])
  })
})

describe('C6.3.7 the line on whom to ask who has forgotten the password', () => {
  const problemsOf = (forgotten: unknown) => {
    const problems = new Problems()
    const schema = viewOf(SETTINGS.schema).properties?.['identity'] ?? {}
    const node = nodeOf({ pages: { forgotten } }, { file: 'test', line: 1 })
    load(schema, node, [], { environment: {}, problems })
    return problems.list.map(({ message, path }) => `${path.join('.')} ${message}`)
  }

  it.each([
    ['a character', 'x'],
    ['300 characters', 'x'.repeat(300)],
    ['300 characters outside the first plane', '😀'.repeat(300)],
    ['mark-up, which is text', '<a href="x">Ann</a> & Bob'],
  ])('C6.3.7: it may have %s', (_, text) => expect(problemsOf(text)).toEqual([]))

  it.each([
    ['301 characters', 'x'.repeat(301)],
    ['none', ''],
    ['a line break', 'Ask Ann\nor Bob'],
    ['a line break at its end', 'Ask Ann\n'],
    ['a carriage return', 'Ask Ann\r'],
    ['a tab', 'Ask\tAnn'],
    ['U+2028', 'Ask Ann\u2028or Bob'],
    ['NUL', 'Ask Ann\0'],
    ['DEL', 'Ask Ann\x7f'],
  ])('C6.3.7: it may not have %s', (_, text) =>
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/^pages\.forgotten expected a text of at most 300 characters on one line/),
    ]),
  )
})

describe('C6.2.3 the page of an error', () => {
  it('C6.2.3 says it in people’s words, and the reason for those who can mend it', async () => {
    const seen = await new UserAgent(openFlow()).get(authorizePath({ redirect_uri: 'https://evil.test/' }))
    expect(seen.text).toContain('The way back is not safe')
    expect(seen.text).toContain('is not one that it has registered')
    expect(seen.text).toContain('href="/connect/account"')
    expect(seen.text).toContain('request-1')
  })
})

describe('C6.2.3 the password', () => {
  it('C6.2.3 can be shown by a script that the policy admits by its hash, and no other', async () => {
    const seen = await new UserAgent(openFlow()).get(authorizePath())
    const policy = String(seen.headers['Content-Security-Policy'])
    expect(policy).toMatch(/script-src 'sha256-[A-Za-z0-9+/]{43}='(;|$)/)
    expect(seen.text.match(/<script/g)).toHaveLength(1)
    expect(seen.text).toContain('data-show="Show"')
    const other = await new UserAgent(openFlow()).get('/connect/endsession')
    expect(String(other.headers['Content-Security-Policy'])).not.toContain('script-src')
  })
})
