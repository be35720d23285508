import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { sourceFiles } from '../support/source-files.ts'
import { userinfo } from '../../src/identity/tokens/claims.ts'
import {
  answerIn,
  authorizePath,
  openFlow,
  partner,
  redeem,
  UserAgent,
  USERS,
  obtainCode,
} from '../support/user-agent.ts'
import {
  requestToken,
  basic,
  client,
  formOf,
  user,
  type JsonAnswer,
  type TestIdentity,
  type TestIdentityOptions,
} from '../support/identity-under-test.ts'

// T3.8: a lockout that is asked for at one door only (CVE-2026-16103). Here, every door, in one table.

const SCOPE = 'openid offline_access fund.read target:b/ACME'
const RESOURCE = client('upstream', { resource: true })
const CLIENTS = [partner, client('acme-books'), RESOURCE]

/** What alice and the clients hold before anything happens to them. */
async function held(service: TestIdentity) {
  const { json } = await requestToken(service, { scope: SCOPE })
  const { code, agent } = await obtainCode(service, {
    scope: 'openid offline_access fund.read target:b/ACME',
  })
  return { tokens: json, code, agent }
}

type Held = Awaited<ReturnType<typeof held>>

const introspect = (service: TestIdentity, token: string): Promise<JsonAnswer> =>
  service.send({
    path: '/connect/introspect',
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: basic('upstream') },
    body: formOf({ token }),
  })

const outcome = ({ status, json }: JsonAnswer): string => (status === 200 ? 'let in' : json.error)

/** Each door, and what it says to somebody who is let in, as one word. */
const DOORS: readonly (readonly [
  string,
  (service: TestIdentity, held: Held) => Promise<string>,
  whom: 'user' | 'both',
])[] = [
  ['the password grant', async (service) => outcome(await requestToken(service)), 'both'],
  [
    'the refresh grant',
    async (service, { tokens }) =>
      outcome(
        await requestToken(service, {
          grant_type: 'refresh_token',
          refresh_token: tokens.refresh_token,
          scope: undefined,
        }),
      ),
    'both',
  ],
  ['the code grant', async (service, { code }) => outcome(await redeem(service, code)), 'both'],
  [
    'the login page',
    async (service) => {
      const agent = new UserAgent(service)
      return answerIn(await agent.logIn(await agent.get(authorizePath())))['code'] === undefined
        ? 'refused'
        : 'let in'
    },
    'user',
  ],
  [
    'a session',
    async (service, { agent }) => {
      const other = new UserAgent(service)
      other.cookie = agent.cookie
      const answer = answerIn(await other.get(authorizePath({ prompt: 'none', scope: SCOPE })))
      return answer['code'] === undefined ? 'refused' : 'let in'
    },
    'both',
  ],
  [
    'the page of applications',
    async (service, { agent }) => {
      const other = new UserAgent(service)
      other.cookie = agent.cookie
      return (await other.get('/connect/account')).text.includes('Sign in') ? 'refused' : 'let in'
    },
    'user',
  ],
  [
    'introspection of a refresh token',
    async (service, { tokens }) =>
      (await introspect(service, tokens.refresh_token)).json.active === true ? 'let in' : 'refused',
    'both',
  ],
  [
    'introspection of an access token',
    async (service, { tokens }) =>
      (await introspect(service, tokens.access_token)).json.active === true ? 'let in' : 'refused',
    'both',
  ],
  [
    'userinfo',
    async (service, { tokens }) => {
      const principal = await service.check.check(tokens.access_token)
      const claims = Promise.resolve(userinfo(service.identity.dependencies).describe(principal))
      return claims.then(
        () => 'let in',
        () => 'refused',
      )
    },
    'user',
  ],
]

const alice = (more: Parameters<typeof user>[1]): TestIdentityOptions => ({
  users: [user('alice', more), ...USERS.slice(1)],
})

const open = (options: TestIdentityOptions = {}): TestIdentity => openFlow({ clients: CLIENTS, ...options })

describe('C6.3.5 who is locked or disabled holds nothing', () => {
  it.each(DOORS)('%s lets in whoever is neither', async (_, enter) => {
    const service = open()
    expect(await enter(service, await held(service))).toBe('let in')
  })

  it.each(DOORS)('T3.8 C6.3.5 %s refuses a user who is locked, as one who is disabled', async (_, enter) => {
    for (const options of [alice({ locked: true }), alice({ disabled: true })]) {
      const service = open()
      const before = await held(service)
      expect(await enter(open({ ...options, store: service.store }), before)).not.toBe('let in')
    }
  })

  it.each(DOORS.filter(([, , whom]) => whom === 'both'))(
    'T3.8 C6.3.5 %s refuses a client that is disabled',
    async (_, enter) => {
      const service = open()
      const before = await held(service)
      const after = CLIENTS.map((each) => ({ ...each, disabled: each.id !== 'upstream' }))
      expect(await enter(open({ clients: after, store: service.store }), before)).not.toBe('let in')
    },
  )

  it('C12 the record of a refused login names whom it meant, also one who may hold nothing', async () => {
    const service = open(alice({ locked: true }))
    await requestToken(service)
    expect(service.tokens).toMatchObject([{ subject: 'sub-alice', result: 'invalid_grant' }])
  })

  it('no file of identity looks at `disabled` and `locked`: no door can forget to, since none finds such people', () => {
    const files = [...sourceFiles('src/identity'), ...sourceFiles('src/gateway')].filter(
      (file) => !/src\/identity\/(?:directory|keys)\//.test(file),
    )
    const looking = files.filter((file) =>
      /\b(disabled|locked)\b(?!:)/.test(readFileSync(file, 'utf8').replace(/\/\*[^]*?\*\/|\/\/.*/g, '')),
    )
    expect(looking).toEqual([])
  })
})
