import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Verified } from '../../src/base/contracts/people/keys.ts'
import { foreignClaimsReader, readOwnClaims } from '../../src/gateway/decide/claims.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { anyText } from '../support/any-text.ts'
import { PRINCIPAL } from '../support/calls.ts'
import { FOREIGN_CLAIMS } from '../support/foreign-issuer.ts'
import { postForm } from '../support/oauth.ts'
import { type StartedPostern, startPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream } from '../support/start-upstream.ts'
import { basic, issueToken } from '../support/tokens.ts'

/** T3.11: a scope is one text that others split, so nothing in it may hold white space of any kind. */

/** What somebody's `split(/\s+/)`, `\p{Z}`, C string or terminal takes for an end. Space is the separator itself. */
const DIVIDERS: readonly (readonly [string, string])[] = [
  ['a no-break space', '\u00a0'],
  ['a tab', '\t'],
  ['a line feed', '\n'],
  ['a carriage return', '\r'],
  ['a vertical tab', '\v'],
  ['a form feed', '\f'],
  ['a NUL', '\0'],
  ['a next line', '\u0085'],
  ['an em space', '\u2003'],
  ['a line separator', '\u2028'],
  ['an ideographic space', '\u3000'],
  ['a byte order mark', '\ufeff'],
  ['a zero width space', '\u200b'],
  ['a quote', '"'],
  ['a backslash', '\\'],
]

const injected = (divider: string): string => `x${divider}fund.maintain`

const withAnyFunds = (configuration: Configuration): Configuration => {
  const { directory } = configuration
  const { GLOBEX, ...others } = directory.businesses
  if (GLOBEX === undefined) throw new Error('the demo has no GLOBEX any more')
  const businesses = { ...others, GLOBEX: { ...GLOBEX, funds: 'any' as const } }
  return { ...configuration, directory: { ...directory, businesses } }
}

const withTokens = (configuration: Configuration): Configuration => {
  const { funds } = configuration.backends
  if (funds?.kind !== 'http') throw new Error('the demo has another backend now')
  const backends = { ...configuration.backends, funds: { ...funds, identity: 'token' as const } }
  return withAnyFunds({ ...configuration, backends })
}

let upstream: Upstream
let headers: StartedPostern
let signed: StartedPostern

beforeAll(async () => {
  upstream = await openUpstream(answerJson({ Code: 'x' }))
  const start = (change: typeof withAnyFunds) =>
    startPostern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change,
    })
  headers = await start(withAnyFunds)
  signed = await start(withTokens)
})
afterAll(async () => {
  await headers.close()
  await signed.close()
  await upstream.close()
})
beforeEach(() => void upstream.requests.splice(0))

const detail = (fund: string): string => `/api/1.0/f/GLOBEX/${fund}/fund-data/fund-detail`
const get = (url: string, token: string) => fetch(url, { headers: { Authorization: `Bearer ${token}` } })

describe('T3.11 where `funds: any` leaves the funds to the backend', () => {
  it.each(DIVIDERS)('C5.4 refuses a target that holds %s, at the token endpoint', async (_, divider) => {
    const params = {
      ...{ grant_type: 'password', username: 'alice', password: 'alice-password' },
      scope: `fund.read target:f/GLOBEX/${injected(divider)}`,
    }
    const { status, json } = await postForm(headers, '/connect/token', { params })
    expect([status, json.error, json.access_token]).toEqual([400, 'invalid_scope', undefined])
  })

  it('C6.2.1 refuses it at authorize, before anybody is asked to log in', async () => {
    const query = new URLSearchParams({
      ...{ client_id: 'ledgerline', redirect_uri: 'http://127.0.0.1:8090/callback', response_type: 'code' },
      ...{ code_challenge: 'A'.repeat(43), code_challenge_method: 'S256' },
      scope: `openid fund.read target:f/GLOBEX/${injected('\u00a0')}`,
    })
    const answer = await fetch(`${headers.authUrl}/connect/authorize?${query.toString()}`, {
      redirect: 'manual',
    })
    expect(new URL(answer.headers.get('location') ?? '').searchParams.get('error')).toBe('invalid_scope')
  })

  it('C6.1.7 refuses it where a refresh asks for less', async () => {
    const first = await issueToken(headers, { scope: 'fund.read offline_access target:b/GLOBEX' })
    const { status, json } = await postForm(headers, '/connect/token', {
      params: {
        grant_type: 'refresh_token',
        refresh_token: first.refresh_token ?? '',
        scope: `fund.read target:f/GLOBEX/${injected('\u00a0')}`,
      },
    })
    expect([status, json.error]).toEqual([400, 'invalid_scope'])
  })

  it.each([
    ['headers', () => headers],
    ['token', () => signed],
  ] as const)(
    'C4.8 a URL with such a fund is 404, and no upstream is told of it (%s)',
    async (_, gateway) => {
      const { access_token } = await issueToken(gateway(), { scope: 'fund.read target:b/GLOBEX' })
      for (const divider of ['%C2%A0', '%20', '%E2%80%83', '%EF%BB%BF', '%22'])
        expect(
          (await get(`${gateway().baseUrl}${detail(`x${divider}fund.maintain`)}`, access_token)).status,
        ).toBe(404)
      expect(upstream.requests).toEqual([])
      expect((await get(`${gateway().baseUrl}${detail("A-1.b~(c)'!")}`, access_token)).status).toBe(200)
      expect(upstream.requests).toHaveLength(1)
    },
  )

  it('C6.3.3 a family that an earlier version gave such a target has no target any more', async () => {
    const { world, authUrl } = headers
    const issued = await issueToken(headers, { scope: 'fund.read offline_access target:f/GLOBEX/OLD' })
    const families = await world.store.listBy('refresh_family', 'client', 'acme-books')
    const family = families.find(({ value }) => JSON.stringify(value).includes('GLOBEX/OLD'))
    const value = {
      ...(family?.value as object),
      scope: `fund.read offline_access target:f/GLOBEX/${injected('\u00a0')}`,
    }
    await world.store.replace('refresh_family', family?.key ?? '', family?.version ?? 0, value)
    const ask = (path: string, params: Record<string, string>) =>
      fetch(`${authUrl}${path}`, {
        method: 'POST',
        headers: { Authorization: basic('acme-books') },
        body: new URLSearchParams(params),
      }).then((answer) => answer.json() as Promise<{ scope?: string }>)
    const token = issued.refresh_token ?? ''
    expect((await ask('/connect/introspect', { token })).scope).toBe('fund.read offline_access')
    const again = await ask('/connect/token', { grant_type: 'refresh_token', refresh_token: token })
    expect(again.scope).toBe('fund.read offline_access')
  })

  it('C10 a fund that is made gets a code, or is not made', async () => {
    const demo = await startPostern({ keeps: 'nothing' })
    try {
      const { access_token } = await issueToken(demo, {
        scope: 'business.fund.create fund.read target:b/ACME',
      })
      const create = (Code: string) =>
        fetch(`${demo.baseUrl}/api/1.0/b/ACME/fund-data/fund-create`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${access_token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ Code, Name: 'New' }),
        })
      expect((await create(injected('\u00a0'))).status).toBe(400)
      const params = {
        ...{ grant_type: 'password', username: 'alice', password: 'alice-password' },
        scope: `fund.read target:f/ACME/${injected('\u00a0')}`,
      }
      expect((await postForm(demo, '/connect/token', { params })).json.error).toBe('invalid_scope')
      expect((await create('NEW-1')).status).toBe(200)
    } finally {
      await demo.close()
    }
  })
})

describe('T3.11 tokens of a foreign issuer', () => {
  const ISSUER = 'https://issuer.example'
  let jwks: Server
  let key: CryptoKey
  let sidecar: StartedPostern

  beforeAll(async () => {
    const pair = await generateKeyPair('ES256')
    key = pair.privateKey
    const keys = [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }]
    jwks = createServer((_, response) => void response.end(JSON.stringify({ keys })))
    await new Promise<void>((resolve) => jwks.listen(0, '127.0.0.1', resolve))
    sidecar = await startPostern({
      keeps: 'nothing',
      config: 'sidecar.yaml',
      environment: {
        ...{ UPSTREAM_URL: upstream.url, ISSUER, AUDIENCE: 'https://api.example' },
        ISSUER_JWKS: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/`,
      },
    })
  })
  afterAll(async () => {
    await sidecar.close()
    jwks.close()
  })

  const call = async (scope: unknown, path = '/api/1.0/b/ACME/fund-data/fund-list') => {
    const token = await new SignJWT({ client_id: 'c', scope })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'one' })
      .setIssuer(ISSUER)
      .setAudience('https://api.example')
      .setSubject('s')
      .setIssuedAt()
      .setExpirationTime('5m')
      .setJti('j')
      .sign(key)
    return (await get(`${sidecar.baseUrl}${path}`, token)).status
  }

  it('C11.2 are refused whole where an item can be no scope value, and the upstream hears nothing', async () => {
    const good = ['fund.read', 'target:b/ACME']
    expect(await call([...good, 'x fund.maintain'])).toBe(401)
    expect(await call([...good, ''])).toBe(401)
    for (const [, divider] of DIVIDERS) {
      expect(await call([...good, injected(divider)])).toBe(401)
      expect(await call(`${good.join(' ')} ${injected(divider)}`)).toBe(401)
    }
    expect(upstream.requests).toEqual([])
    expect(await call(good)).toBe(200)
    expect(upstream.requests.at(-1)?.headers['x-postern-scope']).toEqual(['fund.read target:b/ACME'])
  })

  it('C4.8 open no place that is no code, though there is no directory to ask', async () => {
    expect(await call('fund.read target:b/ACME', '/api/1.0/f/ACME/x%C2%A0y/fund-data/fund-detail')).toBe(404)
    expect(upstream.requests).toEqual([])
  })
})

describe('T3.11 whoever reads the claims', () => {
  const rest = { sub: 's', client_id: 'c', iss: 'i', jti: 'j', iat: 1, exp: 2 }
  const unit = fc.oneof(
    fc.constantFrom(' ', ...DIVIDERS.map(([, divider]) => divider)),
    fc.constantFrom('target:f/A/', 'fund.read', '/', 'x'),
    anyText({ maxLength: 3 }),
  )
  const scope = fc.array(unit, { maxLength: 6 }).map((parts) => parts.join(''))
  const read = (reader: (verified: Verified) => { scope: string; scopes: ReadonlySet<string> }) =>
    fc.property(fc.oneof(scope, fc.array(scope, { maxLength: 4 })), (claim) => {
      let told: string
      let judged: ReadonlySet<string>
      try {
        ;({ scope: told, scopes: judged } = reader({ claims: { ...rest, scope: claim }, key: PRINCIPAL.key }))
      } catch {
        return
      }
      const split = told.split(/[\s\p{Z}\p{C}"\\]+/u).filter((value) => value !== '')
      expect(new Set(split)).toEqual(judged)
    })

  it('judges the very values that others will read in the text that they are told', () => {
    const foreign = foreignClaimsReader(FOREIGN_CLAIMS)
    fc.assert(read(foreign))
    fc.assert(read(readOwnClaims))
  })
})
