import { decodeJwt } from 'jose'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { restartInTurn } from './support/balanced-nodes.ts'
import { between, statusesOf } from './support/callers.ts'
import { needing } from '../../support/machine.ts'
import {
  SCOPE,
  startWorld,
  suffer,
  type Trouble,
  TROUBLES,
  until,
  type World,
} from './support/node-troubles.ts'
import type { StartedNode } from './support/nodes.ts'
import { postForm } from '../../support/oauth.ts'
import { bearer } from '../../support/requests.ts'
import { issueToken } from '../../support/tokens.ts'

// Real nodes on a real Postgres, each in a process of its own. `npm run prove nodes-troubles` does the same for longer and
// tells how long callers wait.

/** Milliseconds: longer than store.deadline. */
const LASTS = 3000

const WITH = needing('postgresql')

const call = async ({ baseUrl }: StartedNode, token: string): Promise<number> =>
  (await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers: bearer(token) })).status

const login = async (node: StartedNode, username: string): Promise<number> => {
  const params = { grant_type: 'password', username, password: `${username}-password`, scope: SCOPE }
  return (await postForm(node, '/connect/token', { params })).status
}

/** What must hold whatever happens to Postgres: data calls are answered, and nobody is logged out. */
async function expectWell(world: World, trouble: Trouble): Promise<void> {
  const { data, refreshed, elsewhere, backAfter } = await suffer(world, trouble, LASTS)
  expect(Object.keys(statusesOf(data))).toEqual(['200'])
  expect(backAfter).not.toBe(Infinity)
  const told = Object.keys(statusesOf(refreshed))
  expect(told.filter((status) => status !== '200')).toEqual(['503'])
  if (trouble.ofSecond === true) expect(Object.keys(statusesOf(elsewhere))).toEqual(['200'])
}

const troubles = (withStandby: boolean) =>
  Object.entries(TROUBLES).filter(([, trouble]) => (trouble.withStandby === true) === withStandby)

describe('T5.13 two nodes on a Postgres', WITH, () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ settings: 'load: { shedding: { delay: 0s } }' })
  })
  afterAll(() => world.close())

  it.each(troubles(false))(
    'C11.7 answer data calls while it is %s, and refuse refreshes without ending a family',
    async (_name, trouble) => expectWell(world, trouble),
    60_000,
  )

  it('C11.7.2 give no token to a disabled user at the node that is cut off', async () => {
    const [one, other] = world.nodes as [StartedNode, StartedNode]
    const dora = { username: 'dora', password: 'dora-password', access: { ACME: 'Administrator' } }
    expect(await world.order(one, '/users', { ...dora, customers: ['acme-books'] })).toBe(201)
    await until(async () => (await login(other, 'dora')) === 200, 'the other node knows dora')
    other.proxy.freeze()
    expect(await world.order(one, '/users/dora/disable')).toBe(200)
    for (const end = performance.now() + 1500; performance.now() < end;)
      expect(await login(other, 'dora')).toBe(503)
    other.proxy.mend()
    await until(async () => (await login(other, 'dora')) !== 503, 'the other node reads again')
    expect([await login(one, 'dora'), await login(other, 'dora')]).toEqual([400, 400])
  })

  it('C11.7 refuse a revoked token in the first calls after a pause', async () => {
    const [one, other] = world.nodes as [StartedNode, StartedNode]
    const { access_token: token } = await issueToken(one, { scope: SCOPE })
    expect(await call(other, token)).toBe(200)
    process.kill(other.pid, 'SIGSTOP')
    try {
      expect(await world.order(one, '/revoke', { jti: decodeJwt(token).jti })).toBe(200)
      await pause(2500)
      const first = Array.from({ length: 10 }, () => call(other, token))
      // They lie in its sockets when it goes on.
      await pause(100)
      process.kill(other.pid, 'SIGCONT')
      expect(new Set(await Promise.all(first))).toEqual(new Set([401]))
    } finally {
      process.kill(other.pid, 'SIGCONT')
    }
  })
})

describe('T5.13 two nodes on a Postgres with a standby', WITH, () => {
  it.each(troubles(true))(
    'C11.7 go on when it is %s, and a revoked token stays revoked',
    async (_name, trouble) => {
      const world = await startWorld({ standby: true, settings: 'load: { shedding: { delay: 0s } }' })
      try {
        const [one, other] = world.nodes as [StartedNode, StartedNode]
        const { access_token: token } = await issueToken(one, { scope: SCOPE })
        const begin = async (begun: World): Promise<void> => {
          // The standby may not hear of this rule: the nodes have to tell it.
          if (trouble.losesCommits === true) begun.standby!.deafen()
          expect(await world.order(one, '/revoke', { jti: decodeJwt(token).jti })).toBe(200)
          await until(async () => (await call(other, token)) === 401, 'the rule at the other node')
          await trouble.begin(begun)
        }
        await expectWell(world, { ...trouble, begin })
        expect([await call(one, token), await call(other, token)]).toEqual([401, 401])
      } finally {
        await world.close()
      }
    },
    90_000,
  )
})

describe('T5.13 two nodes of which one is killed', WITH, () => {
  it('C6.1 lose nobody’s login: its clients refresh at the other one', async () => {
    const world = await startWorld()
    try {
      const [one, other] = world.nodes as [StartedNode, StartedNode]
      const { refresh_token = '', access_token } = await issueToken(other, { scope: SCOPE })
      process.kill(other.pid, 'SIGKILL')
      const params = { grant_type: 'refresh_token', refresh_token }
      expect((await postForm(one, '/connect/token', { params })).status).toBe(200)
      expect(await call(one, access_token)).toBe(200)
      expect(Object.keys(statusesOf(between(world.data.slice(0, 1), 0)))).toEqual(['200'])
    } finally {
      await world.close()
    }
  })
})

describe('T5.13 two nodes whose clocks are 5 s apart', WITH, () => {
  it('C11.7.1 end at both what was issued before a revocation, and nothing that was issued after it', async () => {
    const world = await startWorld({ ahead: [0, 5000] })
    try {
      const [one, other] = world.nodes as [StartedNode, StartedNode]
      const { access_token: before } = await issueToken(other, { scope: SCOPE })
      expect(Math.abs((decodeJwt(before).iat ?? 0) - Date.now() / 1000)).toBeLessThan(4)
      const { sub: subject } = decodeJwt(before)
      expect(await world.order(one, '/revoke', { subject })).toBe(200)
      await until(async () => (await call(other, before)) === 401, 'the rule at the other node')
      expect(await call(one, before)).toBe(401)
      const { access_token: after } = await issueToken(other, { scope: SCOPE })
      expect([await call(one, after), await call(other, after)]).toEqual([200, 200])
    } finally {
      await world.close()
    }
  })
})

describe('T5.13 three nodes behind HAProxy', needing('postgresql', 'haproxy'), () => {
  it('C11.1 lose no call while they are restarted one after another', async () => {
    const { statuses } = await restartInTurn(1000)
    expect(Object.keys(statuses)).toEqual(['200'])
  })
})
