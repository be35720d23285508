import { describe, expect, it } from 'vitest'
import type { OAuth2Config } from '../../src/gateway/backends/forward/schema/schema.ts'
import { FAULTS } from '../../src/base/kernel/fault-table.ts'
import { withFunds } from '../support/changed-funds.ts'
import { eventually } from '../support/eventually.ts'
import { type MovableClock, movableClock } from '../support/movable-clock.ts'
import { openRaw } from '../support/raw-http.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, requestBytes, send } from '../support/requests.ts'
import type { StartedPostern } from '../support/start-postern.ts'
import {
  answerJson,
  startUpstream,
  type Upstream,
  type UpstreamBehaviour,
} from '../support/start-upstream.ts'
import { grant, grantEach, oauth2 } from '../support/token-endpoint.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const SECOND = 1000

interface World {
  readonly upstream: Upstream
  readonly endpoint: Upstream
  readonly gateway: StartedPostern
  readonly clock: MovableClock
  readonly token: string
  readonly get: () => ReturnType<typeof send>
  readonly post: () => ReturnType<typeof send>
  /** The Authorization headers that the upstream got. */
  readonly sent: () => (string | undefined)[]
}

const clock = movableClock()
/** Each test's backend has a token of its own, whatever the time is. */
const replaced = replacedService({ clock, keeps: 'nothing' })

/** Postern in front of an upstream, and a token endpoint beside it. */
async function world(
  behaviour: UpstreamBehaviour = grantEach(),
  others: Partial<OAuth2Config> = {},
): Promise<World> {
  const upstream = await startUpstream()
  const endpoint = await startUpstream(behaviour)
  const gateway = await replaced({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withFunds({ auth: oauth2(`${endpoint.url}/oauth/token?tenant=a`, others) }),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const headers = bearer(access_token)
  return {
    ...{ upstream, endpoint, gateway, clock, token: access_token },
    get: () => send(gateway, { target: LIST, headers }),
    post: () =>
      send(gateway, {
        method: 'POST',
        target: CREATE,
        body: '{"Code":"NEW1","Name":"New"}',
        headers: { ...headers, 'Content-Type': 'application/json' },
      }),
    sent: () => upstream.requests.map((request) => request.headers['authorization']?.join()),
  }
}

/** 401 unless the token is one of these. */
const accepting =
  (...tokens: readonly string[]): UpstreamBehaviour =>
  (connection) => {
    const given = connection.request.headers['authorization']?.join()
    if (tokens.some((token) => given === `Bearer ${token}`)) answerJson({ ok: true })(connection)
    else connection.respond({ status: 401 })
  }

const events = (gateway: StartedPostern): unknown[] =>
  gateway
    .log()
    .flatMap(({ event, level, detail }) =>
      String(event).startsWith('upstream_token_') ? [[level, event, detail]] : [],
    )

describe('C8.7 auth: oauth2', () => {
  it('C8.7 asks by the client credentials grant, once for all calls, and sends the token', async () => {
    const { endpoint, get, post, sent } = await world(grantEach(), {
      clientId: 'po:stern ü',
      clientSecret: 'a+b c&d',
      scope: 'funds.read funds.write',
      audience: 'https://funds.example',
      resource: 'https://funds.example/api',
    })
    expect((await get()).status).toBe(200)
    expect((await post()).status).toBe(200)
    expect(sent()).toEqual(['Bearer token-1', 'Bearer token-1'])
    expect(endpoint.requests).toHaveLength(1)
    const { method, target, headers, body } = endpoint.requests[0]!
    expect([method, target]).toEqual(['POST', '/oauth/token?tenant=a'])
    // RFC 6749 §2.3.1: each of the two is encoded as in a form.
    const pair = Buffer.from('po%3Astern+%C3%BC:a%2Bb+c%26d').toString('base64')
    expect(headers['authorization']).toEqual([`Basic ${pair}`])
    expect(headers['content-type']).toEqual(['application/x-www-form-urlencoded'])
    expect(Object.fromEntries(new URLSearchParams(body.toString()))).toEqual({
      grant_type: 'client_credentials',
      scope: 'funds.read funds.write',
      audience: 'https://funds.example',
      resource: 'https://funds.example/api',
    })
  })

  it('C8.7 sends id and secret in the form where the configuration says so, and in no header', async () => {
    const { endpoint, get } = await world(grantEach(), { clientAuthentication: 'post' })
    await get()
    expect(endpoint.requests[0]!.headers['authorization']).toBeUndefined()
    expect(Object.fromEntries(new URLSearchParams(endpoint.requests[0]!.body.toString()))).toEqual({
      grant_type: 'client_credentials',
      client_id: 'postern',
      client_secret: 'not-told-to-anybody',
    })
  })

  it('C8.7 a hundred calls at once, without a token, make one request for one', async () => {
    const { endpoint, get, sent } = await world()
    const answers = await Promise.all(Array.from({ length: 100 }, get))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(endpoint.requests).toHaveLength(1)
    expect(new Set(sent())).toEqual(new Set(['Bearer token-1']))
  })

  it('C8.7 renews a token 30 s ahead, while calls go on with the old one', async () => {
    const { endpoint, get, clock, sent } = await world(grantEach({ expires_in: 300 }))
    await get()
    clock.advance(269 * SECOND)
    await get()
    expect(endpoint.requests).toHaveLength(1)
    clock.advance(SECOND)
    let answer: () => void = () => undefined
    endpoint.behave((connection) => {
      answer = () => grant('token-2')(connection)
    })
    await get()
    await endpoint.received(2)
    await get()
    expect(sent()).toEqual(Array.from({ length: 4 }, () => 'Bearer token-1'))
    answer()
    await eventually(async () => {
      await get()
      expect(sent().at(-1)).toBe('Bearer token-2')
    })
    expect(endpoint.requests).toHaveLength(2)
  })

  it('C8.7 setting the wall clock forth or back neither ends a token nor prolongs one', async () => {
    const { endpoint, get, clock } = await world(grantEach({ expires_in: 100 }))
    await get()
    clock.step(-3600 * SECOND)
    await get()
    clock.step(3600 * SECOND)
    await get()
    expect(endpoint.requests).toHaveLength(1)
  })

  it.each<[string, UpstreamBehaviour, string]>([
    ['an error', answerJson({ error: 'invalid_scope' }, { status: 400 }), 'it answered 400 (invalid_scope)'],
    ['nothing', (connection) => connection.reset(), 'it cannot be asked (ECONNRESET)'],
    [
      'HTML',
      answering({ headers: { 'Content-Type': 'text/html' }, body: 'BEWARE' }),
      'its answer is no JSON object',
    ],
    ['a life of 0', grant('BEWARE', { expires_in: 0 }), 'its token had expired when it came'],
  ])(
    'C8.7 a token endpoint that answers %s is 503; the upstream gets nothing',
    async (_what, behaviour, reason) => {
      const { upstream, endpoint, gateway, get } = await world(behaviour)
      const answer = await get()
      expect(answer.status).toBe(503)
      expect(answer.headers['retry-after']).toBe('1')
      expect(answer.body).toContain(FAULTS.upstream_token_unavailable.text)
      expect(upstream.requests).toHaveLength(0)
      expect(endpoint.requests).toHaveLength(1)
      expect(events(gateway)).toEqual([['warn', 'upstream_token_failed', reason]])
      expect(gateway.logLines().join()).not.toContain('BEWARE')
    },
  )

  it('C8.7 after a failure it asks again after 1 s, then 2 s, up to 30 s; calls get 503 meanwhile', async () => {
    const { endpoint, gateway, clock, get } = await world(answering({ status: 500 }))
    const waits = [1, 2, 4, 8, 16, 30, 30]
    for (const [index, wait] of waits.entries()) {
      expect((await get()).headers['retry-after']).toBe(String(wait))
      clock.advance(wait * SECOND - 1)
      expect((await get()).headers['retry-after']).toBe('1')
      expect(endpoint.requests).toHaveLength(index + 1)
      clock.advance(1)
    }
    endpoint.behave(grant('good'))
    expect((await get()).status).toBe(200)
    expect(events(gateway)).toEqual([
      ['warn', 'upstream_token_failed', 'it answered 500'],
      ['info', 'upstream_token_works_again', undefined],
    ])
  })

  it('C8.7 while the token has not expired, a renewal that fails harms nobody', async () => {
    const { endpoint, clock, get } = await world(grantEach({ expires_in: 100 }))
    await get()
    endpoint.behave((connection) => connection.reset())
    for (const seconds of [75, 10, 14]) {
      clock.advance(seconds * SECOND)
      expect((await get()).status).toBe(200)
    }
    clock.advance(SECOND)
    expect((await get()).status).toBe(503)
  })
})

function answering(answer: Parameters<Parameters<UpstreamBehaviour>[0]['respond']>[0]): UpstreamBehaviour {
  return (connection) => connection.respond(answer)
}

describe('C8.7 clients that wait for a token', () => {
  it('C8.7 one that leaves ends its call, and neither the fetch nor the calls of others', async () => {
    const { upstream, endpoint, gateway, token, get } = await world(() => undefined)
    const leaving = await openRaw(gateway.port)
    leaving.send(requestBytes({ target: LIST, headers: bearer(token) }))
    const { socket } = await endpoint.received(1).then(() => endpoint.connections[0]!)
    leaving.destroy()
    await eventually(() => expect(gateway.log().map(({ reason }) => reason)).toContain('client_gone'))
    const staying = get()
    expect(socket.destroyed).toBe(false)
    const body = JSON.stringify({ access_token: 'token-1', token_type: 'bearer' })
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect((await staying).status).toBe(200)
    expect(upstream.requests).toHaveLength(1)
    expect(endpoint.requests).toHaveLength(1)
  })
})

describe('C8.7 a token that the upstream refuses', () => {
  it('C8.7 is thrown away, and a GET is sent again with a new one', async () => {
    const { upstream, endpoint, get, sent } = await world()
    await get()
    upstream.behave(accepting('token-2'))
    expect((await get()).status).toBe(200)
    expect(sent()).toEqual(['Bearer token-1', 'Bearer token-1', 'Bearer token-2'])
    expect(endpoint.requests).toHaveLength(2)
  })

  it('C8.7 is thrown away for a POST too, which is not sent again: its client gets 500', async () => {
    const { upstream, get, post, sent } = await world()
    upstream.behave(accepting('token-2'))
    expect((await post()).status).toBe(500)
    expect((await get()).status).toBe(200)
    expect(sent()).toEqual(['Bearer token-1', 'Bearer token-2'])
  })

  it('C8.7 costs one request for a new one, however many calls it is refused to', async () => {
    const { upstream, endpoint, get } = await world()
    await get()
    upstream.behave(accepting('token-2'))
    const answers = await Promise.all(Array.from({ length: 100 }, get))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(endpoint.requests).toHaveLength(2)
  })

  it('C8.7 an upstream that refuses every token does not cost a new one per call', async () => {
    const { upstream, endpoint, clock, get } = await world()
    upstream.behave(accepting())
    for (let call = 0; call < 20; call++) expect((await get()).status).toBe(500)
    expect(endpoint.requests).toHaveLength(2)
    for (const [index, wait] of [1, 2, 4, 8, 16, 30, 30].entries()) {
      clock.advance(wait * SECOND - 1)
      await get()
      expect(endpoint.requests).toHaveLength(index + 2)
      clock.advance(1)
      await get()
      expect(endpoint.requests).toHaveLength(index + 3)
    }
  })

  it('C8.7 while no new one can be got, calls are 503', async () => {
    const { upstream, endpoint, get } = await world()
    await get()
    upstream.behave(accepting())
    endpoint.behave(answering({ status: 500 }))
    expect((await get()).status).toBe(503)
    expect((await get()).status).toBe(503)
    expect(upstream.requests).toHaveLength(2)
    expect(endpoint.requests).toHaveLength(2)
  })
})

it('C8.7 neither a client nor the log learns secret, token or token endpoint', async () => {
  const { gateway, upstream, endpoint, clock, get, post } = await world(grantEach({ expires_in: 60 }))
  const answers = [await get(), await post()]
  upstream.behave(accepting())
  answers.push(await get(), await post())
  clock.advance(60 * SECOND)
  endpoint.behave(answering({ status: 500, body: 'token-9' }))
  answers.push(await get())
  const told = [...gateway.logLines(), ...answers.map(({ body, headers }) => JSON.stringify([body, headers]))]
  for (const secret of ['not-told-to-anybody', 'token-', String(endpoint.port), '/oauth/token'])
    expect(told.join('\n')).not.toContain(secret)
})
