import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { sourceFiles } from '../support/source-files.ts'
import { userinfo } from '../../src/identity/claims.ts'
import {
  answerIn,
  asking,
  openFlow,
  partner,
  redeem,
  UserAgent,
  USERS,
  walk,
} from '../unit/identity/user-agent.ts'
import {
  ask,
  basic,
  client,
  formOf,
  user,
  type Told,
  type World,
  type WorldOptions,
} from '../unit/identity/identity-under-test.ts'

// T3.8: a lockout that is asked for at one door only (CVE-2026-16103). Here, every door, in one table.

const SCOPE = 'openid offline_access fund.read target:b/ACME'
const RESOURCE = client('upstream', { resource: true })
const CLIENTS = [partner, client('acme-books'), RESOURCE]

/** What alice and the clients hold before anything happens to them. */
async function held(world: World) {
  const { json } = await ask(world, { scope: SCOPE })
  const { code, agent } = await walk(world, { scope: 'openid offline_access fund.read target:b/ACME' })
  return { tokens: json, code, agent }
}

type Held = Awaited<ReturnType<typeof held>>

const introspect = (world: World, token: string): Promise<Told> =>
  world.send({
    path: '/connect/introspect',
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: basic('upstream') },
    body: formOf({ token }),
  })

const outcome = ({ status, json }: Told): string => (status === 200 ? 'let in' : json.error)

/** Each door, and what it says to somebody who is let in, as one word. */
const DOORS: readonly (readonly [
  string,
  (world: World, held: Held) => Promise<string>,
  whom: 'user' | 'both',
])[] = [
  ['the password grant', async (world) => outcome(await ask(world)), 'both'],
  [
    'the refresh grant',
    async (world, { tokens }) =>
      outcome(
        await ask(world, {
          grant_type: 'refresh_token',
          refresh_token: tokens.refresh_token,
          scope: undefined,
        }),
      ),
    'both',
  ],
  ['the code grant', async (world, { code }) => outcome(await redeem(world, code)), 'both'],
  [
    'the login page',
    async (world) => {
      const agent = new UserAgent(world)
      return answerIn(await agent.logIn(await agent.get(asking())))['code'] === undefined
        ? 'refused'
        : 'let in'
    },
    'user',
  ],
  [
    'a session',
    async (world, { agent }) => {
      const other = new UserAgent(world)
      other.cookie = agent.cookie
      const answer = answerIn(await other.get(asking({ prompt: 'none', scope: SCOPE })))
      return answer['code'] === undefined ? 'refused' : 'let in'
    },
    'both',
  ],
  [
    'the page of applications',
    async (world, { agent }) => {
      const other = new UserAgent(world)
      other.cookie = agent.cookie
      return (await other.get('/connect/applications')).text.includes('Sign in') ? 'refused' : 'let in'
    },
    'user',
  ],
  [
    'introspection of a refresh token',
    async (world, { tokens }) =>
      (await introspect(world, tokens.refresh_token)).json.active === true ? 'let in' : 'refused',
    'both',
  ],
  [
    'introspection of an access token',
    async (world, { tokens }) =>
      (await introspect(world, tokens.access_token)).json.active === true ? 'let in' : 'refused',
    'both',
  ],
  [
    'userinfo',
    async (world, { tokens }) => {
      const principal = await world.check.check(tokens.access_token)
      const claims = Promise.resolve(userinfo(world.identity.dependencies).describe(principal))
      return claims.then(
        () => 'let in',
        () => 'refused',
      )
    },
    'user',
  ],
]

const alice = (more: Parameters<typeof user>[1]): WorldOptions => ({
  users: [user('alice', more), ...USERS.slice(1)],
})

const open = (options: WorldOptions = {}): World => openFlow({ clients: CLIENTS, ...options })

describe('C6.3.5 who is locked or disabled holds nothing', () => {
  it.each(DOORS)('%s lets in whoever is neither', async (_, enter) => {
    const world = open()
    expect(await enter(world, await held(world))).toBe('let in')
  })

  it.each(DOORS)('T3.8 C6.3.5 %s refuses a user who is locked, as one who is disabled', async (_, enter) => {
    for (const options of [alice({ locked: true }), alice({ disabled: true })]) {
      const world = open()
      const before = await held(world)
      expect(await enter(open({ ...options, store: world.store }), before)).not.toBe('let in')
    }
  })

  it.each(DOORS.filter(([, , whom]) => whom === 'both'))(
    'T3.8 C6.3.5 %s refuses a client that is disabled',
    async (_, enter) => {
      const world = open()
      const before = await held(world)
      const after = CLIENTS.map((each) => ({ ...each, disabled: each.id !== 'upstream' }))
      expect(await enter(open({ clients: after, store: world.store }), before)).not.toBe('let in')
    },
  )

  it('C12 the record of a refused login names whom it meant, also one who may hold nothing', async () => {
    const world = open(alice({ locked: true }))
    await ask(world)
    expect(world.tokens).toMatchObject([{ subject: 'sub-alice', result: 'invalid_grant' }])
  })

  it('no file of identity looks at `disabled` and `locked`: no door can forget to, since none finds such people', () => {
    const looking = [...sourceFiles('src/identity'), ...sourceFiles('src/gateway')].filter((file) =>
      /\b(disabled|locked)\b(?!:)/.test(readFileSync(file, 'utf8').replace(/\/\*[^]*?\*\/|\/\/.*/g, '')),
    )
    expect(looking).toEqual([])
  })
})
