import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { importJWK, SignJWT } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { bearer, send } from '../support/requests.ts'
import { movableClock } from '../support/movable-clock.ts'
import { type StartedPostern, startPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const UNKNOWN = 'The access token is malformed, expired, revoked or not meant for this service'

const clock = movableClock()
let gateway: StartedPostern

beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing', clock })
  return () => gateway.close()
})

const newToken = async (): Promise<string> => (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token

interface Refusal {
  readonly status: number
  readonly message: string
  readonly challenge: string | undefined
}

async function refusalOf(token: string, target = LIST): Promise<Refusal> {
  const { status, headers, body } = await send(gateway, { target, headers: bearer(token) })
  const envelope = JSON.parse(body) as { Errors: { Message: string }[] }
  return {
    status,
    message: envelope.Errors[0]?.Message ?? '',
    challenge: /error="invalid_token", error_description="([^"]*)"/.exec(
      String(headers['www-authenticate']),
    )?.[1],
  }
}

const decode = (part = ''): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>

/** A token that nobody has seen before, signed with the service's own RSA key. */
async function signed(changed: Record<string, unknown>): Promise<string> {
  const [, payload] = (await newToken()).split('.')
  const { keys } = (await (await fetch(`${gateway.authUrl}/.well-known/jwks.json`)).json()) as {
    keys: { kid: string; alg: string }[]
  }
  const kid = keys.find(({ alg }) => alg === 'RS256')?.kid ?? ''
  const jwk = JSON.parse(await readFile(join(gateway.data, 'keys', 'RS256-1.jwk'), 'utf8')) as object
  const { d, n, e, p, q, dp, dq, qi } = jwk as Record<string, string>
  const key = await importJWK({ kty: 'RSA', d, n, e, p, q, dp, dq, qi } as never, 'RS256')
  return new SignJWT({ ...decode(payload), ...changed })
    .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
    .sign(key)
}

const forged = (token: string): string => {
  const [header, payload, signature = ''] = token.split('.')
  return [header, payload, (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)].join('.')
}

describe('C4.17a the bearer of a token of this service', () => {
  it.each([LIST, '/api/1.0/u/connect/userinfo'])('is told that it has expired, at %s', async (target) => {
    const token = await newToken()
    clock.advance(3600_000)
    const { status, headers } = await send(gateway, { target, headers: bearer(token) })
    expect([status, headers['www-authenticate']]).toEqual([
      401,
      expect.stringContaining('error="invalid_token", error_description="The access token has expired"'),
    ])
    expect(await refusalOf(token)).toMatchObject({ message: 'The access token has expired. Get a new one.' })
  })

  it('is told so by a process that has never seen it', async () => {
    const now = clock.now() / 1000
    const token = await signed({ iat: now - 900, exp: now - 1 })
    expect(await refusalOf(token)).toMatchObject({ challenge: 'The access token has expired' })
  })

  it('is told that it was revoked', async () => {
    const token = await newToken()
    await fetch(`${gateway.authUrl}/connect/revocation`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ token }),
    })
    expect(await refusalOf(token)).toEqual({
      status: 401,
      message: 'The access token was revoked. Get a new one, by a refresh token or a new login.',
      challenge: 'The access token was revoked',
    })
  })

  it('is told that it is for another service', async () => {
    expect(await refusalOf(await signed({ aud: 'https://other.example' }))).toEqual({
      status: 401,
      message: 'The access token is for another service. Get one for this service.',
      challenge: 'The access token is for another service',
    })
  })
})

describe('C4.17a of everything else it is only told that the token is no good', () => {
  it.each([
    ['an expired token with another signature', { exp: 1 }],
    ['a token for another service with another signature', { aud: 'https://other.example' }],
  ])('%s', async (_case, changed) => {
    expect(await refusalOf(forged(await signed(changed)))).toMatchObject({ status: 401, challenge: UNKNOWN })
  })

  it('a genuine token that names another issuer', async () => {
    const token = await signed({ iss: 'https://other.example', exp: 1 })
    expect(await refusalOf(token)).toMatchObject({ status: 401, challenge: UNKNOWN })
  })
})
