import { describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { eventually } from '../support/eventually.ts'
import { poolConfig, startPool } from '../support/worker-pool.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { openRaw } from '../support/raw-http.ts'
import { form, requestBytes } from '../support/requests.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { basic } from '../support/tokens.ts'

// T3.8, C6.3.5: logins in bulk, of invented names or from many networks, and who is kept from logging in by them.

const SCOPE = 'fund.read target:b/ACME'

/** Whom the proxy in front says to call: the tests' networks. */
const from = (address: string): Readonly<Record<string, string>> => ({ 'X-Forwarded-For': address })

const behindProxy = (loaded: Configuration): Configuration => ({
  ...loaded,
  server: {
    ...loaded.server,
    trustedProxies: ['127.0.0.1'],
    timeouts: { ...loaded.server.timeouts, drain: 50 },
  },
})

const logIn = (
  service: StartedPostern,
  password: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<OAuthAnswer> =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'password', username: 'alice', password, scope: SCOPE },
    headers,
  })

describe('C6.3.5 logins with invented client ids', () => {
  it('T3.8 T3.9 in bulk: they are all invalid_client, and everybody else logs in', async () => {
    const service = await postern({ keeps: 'nothing' })
    const invented = Array.from({ length: 150 }, (_, at) =>
      postForm(service, '/connect/token', {
        client: `nobody-${at}`,
        secret: 'x',
        params: { grant_type: 'password', username: 'alice', password: 'x' },
      }),
    )
    const others = Array.from({ length: 5 }, () => logIn(service, 'alice-password'))
    for (const { status } of await Promise.all(others)) expect(status).toBe(200)
    for (const { status, json } of await Promise.all(invented))
      expect({ status, error: json.error }).toEqual({ status: 400, error: 'invalid_client' })
  })

  it('T3.8 T3.9 invented users at a real client: the same', async () => {
    const service = await postern({ keeps: 'nothing' })
    const invented = Array.from({ length: 90 }, (_, at) =>
      postForm(service, '/connect/token', {
        params: { grant_type: 'password', username: `nobody-${at}`, password: 'x', scope: SCOPE },
      }),
    )
    const others = Array.from({ length: 5 }, () => logIn(service, 'alice-password'))
    for (const { status } of await Promise.all(others)) expect(status).toBe(200)
    for (const { status, json } of await Promise.all(invented))
      expect({ status, error: json.error }).toEqual({ status: 400, error: 'invalid_grant' })
  })
})

describe('C6.3.5 one account, guessed at from many networks', () => {
  /** As a login is sent, without waiting for its answer. */
  async function send(port: number, password: string, address: string) {
    const connection = await openRaw(port)
    onTestFinished(() => connection.destroy())
    const { headers, body } = form({ grant_type: 'password', username: 'alice', password, scope: SCOPE })
    connection.send(
      requestBytes({
        method: 'POST',
        target: '/connect/token',
        headers: { ...headers, ...from(address), Authorization: basic('acme-books') },
        body,
      }),
    )
    return connection
  }

  it('T3.8 slows down networks new to the user, and none where the user has logged in before', async () => {
    const service = await postern({
      keeps: 'nothing',
      change: (loaded) => {
        const changed = behindProxy(loaded)
        const accounts = { free: 10, delay: 600_000, longest: 600_000, waiting: 4 }
        const { identity } = changed
        return { ...changed, identity: { ...identity, guessing: { ...identity.guessing, accounts } } }
      },
    })
    expect((await logIn(service, 'alice-password', from('192.0.2.7'))).status).toBe(200)
    for (let at = 0; at < 10; at++)
      expect((await logIn(service, 'wrong', from(`198.51.${at}.1`))).status).toBe(400)
    expect(service.context.lockouts.list()).toMatchObject([{ user: 'alice', failures: 10, delay: 600_000 }])

    // One waits for its delay, four for that one; what is more is refused as a wrong password is.
    const sent = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((at) => send(service.port, 'alice-password', `203.0.${at}.1`)),
    )
    const answered = () => sent.filter(({ unread }) => unread !== '')
    await eventually(() => expect(answered()).toHaveLength(1))
    const refused = await answered()[0]?.response()
    expect(refused?.status).toBe(400)
    expect(JSON.parse(refused?.body ?? '')).toMatchObject({ error: 'invalid_grant' })
    for (const password of ['wrong', 'alice-password'])
      expect((await logIn(service, password, from('192.0.2.200'))).status).toBe(
        password === 'wrong' ? 400 : 200,
      )
    expect(answered()).toHaveLength(0)

    // An operator ends it: whoever comes next is let in at once.
    expect(await service.context.lockouts.clear({ user: 'alice' })).toBeGreaterThan(0)
    expect((await logIn(service, 'alice-password', from('203.0.101.1'))).status).toBe(200)
  })

  it('T3.8 is counted for all processes together, and an operator sees and ends it', async () => {
    const pool = await startPool(
      poolConfig(
        'http://127.0.0.1:9',
        `server: { trustedProxies: [127.0.0.1], timeouts: { drain: 50ms } }
identity: { guessing: { accounts: { free: 6, delay: 10m, longest: 10m } } }`,
      ),
    )
    const port = Number(new URL(pool.baseUrl).port)
    const statusOf = async (password: string, address: string): Promise<number> =>
      (await (await send(port, password, address)).response()).status
    expect(await statusOf('alice-password', '192.0.2.7')).toBe(200)
    // Each on a connection of its own: they go to the processes in turns.
    for (let at = 0; at < 6; at++) expect(await statusOf('wrong', `198.51.${at}.1`)).toBe(400)
    expect(await pool.order('GET', '/lockouts')).toMatchObject({
      lockouts: [{ user: 'alice', failures: 6, delay: 600_000 }],
    })
    const sent = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((at) => send(port, 'alice-password', `203.0.${at}.1`)),
    )
    await eventually(() => expect(sent.filter(({ unread }) => unread !== '')).toHaveLength(1))
    for (const address of ['192.0.2.8', '192.0.2.9'])
      expect(await statusOf('alice-password', address)).toBe(200)
    // Six keys, and the account.
    expect(await pool.order('DELETE', '/lockouts?user=alice')).toEqual({ cleared: 7 })
    expect(await statusOf('alice-password', '203.0.100.1')).toBe(200)
  })
})
