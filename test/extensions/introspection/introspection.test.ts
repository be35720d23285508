import type { ServerResponse } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { NEEDS_ISSUER, type TokenPolicy } from '../../../src/base/contracts/people/keys.ts'
import { Introspector } from '../../../src/extensions/introspection/introspection.ts'
import { INTROSPECTION, startIssuerServer, type IssuerAnswer } from '../../support/issuer-server.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { settled } from '../../support/settled.ts'

const AUDIENCE = 'https://api.example'
const UNTIL = { timeout: 30_000, interval: 5 }

async function introspector() {
  const server = await startIssuerServer()
  const clock = movableClock()
  const timers = manualAfter()
  const notes: string[] = []
  const logged: unknown[] = []
  const made = new Introspector({
    issuer: server.url,
    endpoint: () => Promise.resolve(server.url + INTROSPECTION),
    clientId: 'post:ern',
    clientSecret: 's cret%',
    clock,
    recorder: {
      note: (_level, event, facts) => {
        notes.push(event)
        logged.push(facts)
      },
    },
    after: timers.after,
  })
  onTestFinished(() => made.close())
  const policy: TokenPolicy = {
    issuer: server.url,
    audience: AUDIENCE,
    typ: [],
    algorithms: [],
    leeway: 0,
    longestLife: 3600,
  }
  const now = clock.now() / 1000
  const active = {
    ...{ active: true, sub: 'someone', client_id: 'app', scope: 'fund.read', aud: AUDIENCE },
    ...{ iat: now, exp: now + 1800, token_type: 'Bearer' },
  }
  const says = (answer: IssuerAnswer): void => void server.answers.set(INTROSPECTION, answer)
  says(active)
  const verdict = (token = 'opaque', over: Partial<TokenPolicy> = {}): Promise<string> =>
    made.verify(token, { ...policy, ...over }).then(
      () => 'active',
      (thrown: unknown) => (thrown as { code: string }).code,
    )
  const asked = () => server.asked(INTROSPECTION)
  return { made, server, clock, timers, notes, logged, policy, active, says, verdict, asked, now }
}

const REFUSED = 'invalid_token'
const UNAVAILABLE = 'token_judge_unavailable'

describe('C11.2 an opaque token', () => {
  it('C14.1 is judged by an answer that still counts, and nobody is asked', async () => {
    const { made, policy, asked, clock, says } = await introspector()
    const local = (token: string): Promise<unknown> =>
      made.verifyLocally(token, policy).then(
        () => 'active',
        (thrown: unknown) => (thrown as Error).message,
      )
    expect(await local('opaque')).toBe(NEEDS_ISSUER)
    expect(asked()).toEqual([])
    await made.verify('opaque', policy)
    expect(await local('opaque')).toBe('active')
    clock.advance(55_000)
    expect(await local('opaque')).toBe('active')
    says({ active: false })
    await made.verify('other', policy).catch(() => undefined)
    expect(await local('other')).toBe('introspection: not active')
    clock.advance(10_000)
    expect(await local('opaque')).toBe(NEEDS_ISSUER)
    expect(asked()).toHaveLength(2)
  })

  it('C11.2 is introspected by a form, with the credentials of this service', async () => {
    const { made, policy, asked, active, server } = await introspector()
    const { claims, key } = await made.verify('a+token/~=', policy)
    expect(claims).toEqual({ ...active, iss: server.url })
    expect(key.isTrusted()).toBe(true)
    const [request] = asked()
    expect(request).toMatchObject({ method: 'POST' })
    expect(request?.headers).toMatchObject({
      accept: 'application/json',
      authorization: `Basic ${Buffer.from('post%3Aern:s+cret%25').toString('base64')}`,
    })
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      token: 'a+token/~=',
      token_type_hint: 'access_token',
    })
  })

  it.each([
    ['is not active', { active: false }],
    ['has no expiry', { exp: undefined }],
    ['has expired', { exp: 1 }],
    ['lives too long', { exp: Date.UTC(2027, 0, 1) / 1000 }],
    ['has no audience', { aud: undefined }],
    ['has another audience', { aud: ['https://other.example'] }],
    ['has another issuer', { iss: 'https://other.example' }],
    ['is bound to a key', { cnf: { jkt: 'x' } }],
    ['is bound to a key, as its type says', { token_type: 'DPoP' }],
    ['will be good later', { nbf: Date.UTC(2026, 1, 1) / 1000 }],
  ])('C11.2 that %s is refused', async (_, over) => {
    const { says, verdict, active } = await introspector()
    says({ ...active, ...over })
    expect(await verdict()).toBe(REFUSED)
  })

  it('C11.2 needs no audience if the policy names none; then its type must be there, as a refresh token has none', async () => {
    const { says, verdict, active } = await introspector()
    says({ ...active, aud: undefined })
    expect(await verdict('a', { audience: undefined })).toBe('active')
    says({ ...active, aud: undefined, token_type: undefined })
    expect(await verdict('b', { audience: undefined })).toBe(REFUSED)
    says({ ...active, token_type: undefined })
    expect(await verdict('c')).toBe('active')
    says({ ...active, cnf: { jkt: 'x' }, token_type: 'DPoP' })
    expect(await verdict('d', { confirmation: 'ignore' })).toBe('active')
  })

  it.each([
    ['by type and key', { cnf: { jkt: 'a'.repeat(43) }, token_type: 'DPoP' }, 'active'],
    ['by type and key, in another case', { cnf: { jkt: 'a'.repeat(43) }, token_type: 'dpop' }, 'active'],
    ['by neither', {}, 'active'],
    ['by its key alone', { cnf: { jkt: 'a'.repeat(43) } }, REFUSED],
    ['by its key, without a type', { cnf: { jkt: 'a'.repeat(43) }, token_type: undefined }, REFUSED],
    ['by its type alone', { token_type: 'DPoP' }, REFUSED],
    ['by a certificate', { cnf: { 'x5t#S256': 'a'.repeat(43) }, token_type: 'DPoP' }, REFUSED],
  ])('C4.4a C11.2 that is bound %s is judged so, where keys are proven', async (_, over, expected) => {
    const { says, verdict, active } = await introspector()
    says({ ...active, ...over })
    expect(await verdict('a', { confirmation: 'prove' })).toBe(expected)
  })

  it('C11.2 without the time of its issue counts as issued as early as the policy allows', async () => {
    const { made, policy, says, active, now } = await introspector()
    says({ ...active, iat: undefined })
    expect((await made.verify('opaque', policy)).claims['iat']).toBe(now + 1800 - 3600)
  })

  it('T3.2 of more than 16 KiB is refused, and not sent', async () => {
    const { verdict, asked } = await introspector()
    expect(await verdict('x'.repeat(16 * 1024 + 1))).toBe(REFUSED)
    expect(asked()).toHaveLength(0)
  })
})

describe('T3.4 what is remembered of an opaque token', () => {
  it('C11.2 an active one for 60 s, and each token by itself', async () => {
    const { verdict, clock, asked, says } = await introspector()
    expect(await verdict('a')).toBe('active')
    clock.advance(59_999)
    expect(await verdict('a')).toBe('active')
    expect(asked()).toHaveLength(1)
    says({ active: false })
    expect(await verdict('b')).toBe(REFUSED)
    clock.advance(1)
    expect(await verdict('a')).toBe(REFUSED)
    expect(asked()).toHaveLength(3)
  })

  it('C11.2 another one for 10 s', async () => {
    const { verdict, clock, asked, says, active } = await introspector()
    says({ active: false })
    expect(await verdict()).toBe(REFUSED)
    says(active)
    clock.advance(9_999)
    expect(await verdict()).toBe(REFUSED)
    expect(asked()).toHaveLength(1)
    clock.advance(1)
    expect(await verdict()).toBe('active')
  })

  it('C11.2 never beyond its expiry', async () => {
    const { verdict, clock, says, active, now } = await introspector()
    says({ ...active, exp: now + 30 })
    expect(await verdict()).toBe('active')
    clock.advance(30_000)
    expect(await verdict()).toBe(REFUSED)
  })

  it('C4.16 a principal made of it is trusted for 60 s, and longer if a new answer says the same', async () => {
    const { made, policy, clock, asked, timers } = await introspector()
    const { key } = await made.verify('opaque', policy)
    clock.advance(50_000)
    expect(key.isTrusted()).toBe(true)
    await expect.poll(() => asked().length, UNTIL).toBe(2)
    // Its deadline is cancelled when the answer is there.
    await expect.poll(() => timers.delays(), UNTIL).toEqual([])
    await settled()
    clock.advance(49_999)
    expect(key.isTrusted()).toBe(true)
    expect((await made.verify('opaque', policy)).key).toBe(key)
    expect(asked()).toHaveLength(2)
    clock.advance(10_001)
    expect(key.isTrusted()).toBe(false)
    expect(asked()).toHaveLength(2)
  })

  it('C4.16 a principal in use is trusted on, however many other tokens come meanwhile', async () => {
    const { made, policy, clock, says, active, asked, timers } = await introspector()
    const { key } = await made.verify('opaque', policy)
    // More than what is remembered may take.
    says({ ...active, padding: 'x'.repeat(60_000) })
    await Promise.all(Array.from({ length: 600 }, (_, at) => made.verify(`other-${at}`, policy)))
    says(active)
    const before = asked().length
    clock.advance(50_000)
    expect(key.isTrusted()).toBe(true)
    await expect.poll(() => asked().length, UNTIL).toBe(before + 1)
    // Its deadline is cancelled when the answer is there.
    await expect.poll(() => timers.delays(), UNTIL).toEqual([])
    await settled()
    clock.advance(10_000)
    expect(key.isTrusted()).toBe(true)
    expect((await made.verify('opaque', policy)).key).toBe(key)
  })

  it('C4.16 a principal is given up at once if the new answer says something else', async () => {
    for (const answer of [{ active: false }, { scope: 'fund.write' }]) {
      const { made, policy, clock, says, active } = await introspector()
      const { key } = await made.verify('opaque', policy)
      says({ ...active, ...answer })
      clock.advance(50_000)
      await expect.poll(() => key.isTrusted(), UNTIL).toBe(false)
    }
  })

  it('C4.16 nothing of it is trusted once its issuer is not configured any more', async () => {
    const { made, policy } = await introspector()
    const { key } = await made.verify('opaque', policy)
    made.close()
    expect(key.isTrusted()).toBe(false)
  })
})

describe('T3.5 an introspection endpoint under load, or out of order', () => {
  it('C11.2 is asked once for one token, however many calls bring it', async () => {
    const { verdict, asked } = await introspector()
    const all = await Promise.all(Array.from({ length: 50 }, () => verdict()))
    expect(new Set(all)).toEqual(new Set(['active']))
    expect(asked()).toHaveLength(1)
  })

  it('C11.2 is asked for 32 tokens at once; further ones wait, not longer than 2 s', async () => {
    const { verdict, asked, says, timers, active } = await introspector()
    const held: ServerResponse[] = []
    says((response) => void held.push(response))
    const all = Array.from({ length: 40 }, (_, at) => verdict(`token-${at}`))
    await expect.poll(() => held.length, UNTIL).toBe(32)
    await settled()
    expect(asked()).toHaveLength(32)
    expect(new Set(timers.delays())).toEqual(new Set([2_000]))
    says(active)
    for (const response of held.splice(0, 8))
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(active))
    await expect.poll(() => asked().length, UNTIL).toBe(40)
    await Promise.all([...all.slice(0, 8), ...all.slice(32)])
    await timers.fire()
    const verdicts = await Promise.all(all)
    expect(verdicts.filter((each) => each === 'active')).toHaveLength(16)
    expect(verdicts.filter((each) => each === UNAVAILABLE)).toHaveLength(24)
  })

  it.each<[string, IssuerAnswer]>([
    ['refuses our credentials', (response) => response.writeHead(401).end('{"active":true}')],
    ['fails', (response) => response.writeHead(500).end('{"active":true}')],
    ['answers HTML', (response) => response.setHeader('Content-Type', 'text/html').end('{"active":true}')],
    ['says no type', (response) => response.end('{"active":true}')],
    [
      'answers a signed answer',
      (response) => {
        response.setHeader('Content-Type', 'application/token-introspection+jwt').end('a.b.c')
      },
    ],
    ['answers no JSON', json('{"active":')],
    ['answers a list', json('[]')],
    ['says active twice', json('{"active":false,"active":true}')],
    ['says active as a text', json('{"active":"true"}')],
    ['does not say active', json('{"sub":"someone"}')],
    ['answers more than 64 KiB', json(`{"active":true,"a":"${'x'.repeat(64 * 1024)}"}`)],
    [
      'breaks off',
      (response) => {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 99 })
        response.write('{"active":true', () => response.destroy())
      },
    ],
    ['hangs up', (response) => response.destroy()],
  ])('C4.15 one that %s is 503, never 401', async (_, answer) => {
    const { verdict, says, notes, active } = await introspector()
    says(answer)
    expect(await verdict()).toBe(UNAVAILABLE)
    expect(notes).toEqual(['introspection_failed'])
    says(active)
    expect(await verdict()).toBe('active')
    expect(notes).toEqual(['introspection_failed', 'introspection_works_again'])
  })

  it('T3.5 a redirect is not followed: no token and no secret go elsewhere', async () => {
    const other = await startIssuerServer()
    const { verdict, says } = await introspector()
    says((response) => response.writeHead(307, { Location: other.url + INTROSPECTION }).end())
    expect(await verdict()).toBe(UNAVAILABLE)
    expect(other.requests).toEqual([])
  })

  it('T3.5 one that failed three times is asked once a second', async () => {
    const { verdict, says, asked, clock, active } = await introspector()
    says((response) => response.destroy())
    for (let times = 0; times < 10; times++) expect(await verdict(`token-${times}`)).toBe(UNAVAILABLE)
    expect(asked()).toHaveLength(3)
    clock.advance(1_000)
    expect(await Promise.all([verdict('x'), verdict('y')])).toEqual([UNAVAILABLE, UNAVAILABLE])
    expect(asked()).toHaveLength(4)
    says(active)
    clock.advance(1_000)
    expect(await verdict()).toBe('active')
    expect(await verdict('another')).toBe('active')
  })

  it('T3.5 one that will not read some tokens is asked for all others as before', async () => {
    const { verdict, says, notes } = await introspector()
    const fine = json('{"active":false}')
    says((response, request) => {
      const status = Number(new URLSearchParams(request.body).get('token')?.slice(0, 3))
      if (status === 200) (fine as (response: ServerResponse) => unknown)(response)
      else response.writeHead(status).end()
    })
    for (const status of [400, 403, 413, 400, 422, 431]) expect(await verdict(`${status}`)).toBe(UNAVAILABLE)
    expect(await verdict('200')).toBe(REFUSED)
    expect(notes).toEqual([])
    for (const status of [401, 404, 429]) expect(await verdict(`${status}`)).toBe(UNAVAILABLE)
    expect(await verdict('200-later')).toBe(UNAVAILABLE)
    expect(notes).toEqual(['introspection_failed'])
  })

  it('C12 neither the token nor the secret is in what is logged or thrown', async () => {
    const { made, policy, says, logged } = await introspector()
    says((response, { body }) => response.setHeader('Content-Type', 'application/json').end(`{"${body}`))
    const thrown: unknown = await made.verify('a-very-secret-token', policy).catch((error: unknown) => error)
    const inspected = (await import('node:util')).inspect([thrown, logged], { depth: 20 })
    for (const secret of ['a-very-secret-token', 's cret', 's+cret']) expect(inspected).not.toContain(secret)
  })
})

function json(text: string): IssuerAnswer {
  return (response) => response.setHeader('Content-Type', 'application/json').end(text)
}
