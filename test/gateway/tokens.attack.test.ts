import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign as signBytes,
  type KeyObject,
} from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  attackMemory,
  attackUpstream,
  bytesOf,
  type Attacked,
  type AttackedMemory,
  type AttackedUpstream,
} from '../support/attacked.ts'
import { movableClock } from '../support/movable-clock.ts'
import { sendRaw, type RawResponse } from '../support/raw-http.ts'
import { ALL_AT_ACME, basic, issueToken, type TokenResponse } from '../support/tokens.ts'

/** T3.1 to T3.4, from outside: tokens that were forged, bent, borrowed or remembered too long. */

let memory: AttackedMemory
let http: AttackedUpstream
let issued: TokenResponse
let keys: ForgersKeys

const clock = movableClock()
const TARGET = '/api/1.0/b/ACME/fund-data/fund-list'

beforeAll(async () => {
  http = await attackUpstream({ clock })
  memory = await attackMemory()
  issued = await issueToken(http.gateway, { scope: `${ALL_AT_ACME} offline_access` })
  keys = await stealKeys(http, issued.access_token)
})
afterAll(async () => {
  await memory.close()
  await http.close()
})
beforeEach(() => {
  memory.forget()
  http.forget()
})

type Json = Record<string, unknown>

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const decode = (token: string, part: 0 | 1): Json =>
  JSON.parse(Buffer.from(token.split('.')[part] ?? '', 'base64url').toString()) as Json

interface ForgersKeys {
  readonly es: KeyObject
  readonly rs: KeyObject
  readonly header: Json
  readonly claims: Json
}

/** The forger is given the signing keys, so that nothing but the member under test is wrong with a token. */
async function stealKeys({ gateway }: Attacked, token: string): Promise<ForgersKeys> {
  const folder = join(gateway.data, 'keys')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.jwk'))
  const read = async (algorithm: string): Promise<KeyObject> => {
    const name = names.find((each) => each.startsWith(algorithm)) ?? ''
    const key = JSON.parse(await readFile(join(folder, name), 'utf8')) as Json
    return createPrivateKey({ key, format: 'jwk' })
  }
  return {
    es: await read('ES256'),
    rs: await read('RS256'),
    header: decode(token, 0),
    claims: decode(token, 1),
  }
}

const signed = (input: string, key: KeyObject): string =>
  `${input}.${signBytes('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`

/** A genuine signature over whatever header and claims. */
const forge = (header: Json | string = {}, claims: Json | string = {}, key = keys.es): string => {
  const whole = (base: Json, change: Json | string) =>
    encode(typeof change === 'string' ? change : { ...base, ...change })
  return signed(`${whole(keys.header, header)}.${whole(keys.claims, claims)}`, key)
}

const call = (attacked: Attacked, token: string, target = TARGET): Promise<RawResponse> =>
  sendRaw(attacked.port, bytesOf({ target, lines: `Authorization: Bearer ${token}\r\n` }))

/** 401 as RFC 6750 §3.1 wants it, for a reason that the client is not told, and nothing upstream. */
async function expectInvalid(what: string, token: string): Promise<void> {
  const answer = await call(http, token)
  const { status, headers } = answer
  expect([what, status, http.reached()]).toEqual([what, 401, []])
  expect(headers['www-authenticate']).toMatch(
    /^Bearer realm="[^"]*", error="invalid_token", error_description="[^"]*"$/,
  )
  expect(JSON.parse(answer.body)).toMatchObject({ Errors: [{ Code: 'API_NOT_AUTHORISED' }], Data: {} })
}

const now = (): number => Math.floor(clock.now() / 1000)
const publicPem = (key: KeyObject): string =>
  createPublicKey(key as unknown as Parameters<typeof createPublicKey>[0]).export({
    format: 'pem',
    type: 'spki',
  })

describe('the forger', () => {
  it('C4.4 is able to make a token that passes, so that each refusal below has one cause', async () => {
    expect((await call(http, forge())).status).toBe(200)
    expect((await call(http, forge({}, { jti: 'another', extra: 1 }))).status).toBe(200)
    expect(http.reached()).toHaveLength(2)
  })
})

describe('T3.1 forged tokens', () => {
  const strangers = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const stranger = strangers.privateKey
  const strangersJwk = () => strangers.publicKey.export({ format: 'jwk' })
  const hmac = (secret: string, header: Json): string => {
    const input = `${encode({ ...keys.header, ...header })}.${encode(keys.claims)}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const unsigned = (alg: string): string => `${encode({ ...keys.header, alg })}.${encode(keys.claims)}.`

  const forgeries: readonly (readonly [string, () => string])[] = [
    ...['none', 'None', 'NONE', 'nOnE', ''].flatMap((alg) => [
      [`alg ${alg}, no signature`, () => unsigned(alg)] as const,
      [`alg ${alg}, the genuine signature`, () => forge({ alg })] as const,
    ]),
    ['HS256 with the public key as PEM', () => hmac(publicPem(keys.es), { alg: 'HS256' })],
    ['HS256 with the RSA public key as PEM', () => hmac(publicPem(keys.rs), { alg: 'HS256' })],
    ['HS256 with an empty secret', () => hmac('', { alg: 'HS256' })],
    ['HS256 with the kid as secret', () => hmac(String(keys.header['kid']), { alg: 'HS256' })],
    ['a key of another family', () => forge({ alg: 'RS256' }, {}, keys.rs)],
    ['ES384 over the P-256 key', () => forge({ alg: 'ES384' })],
    ['PS256', () => forge({ alg: 'PS256' }, {}, keys.rs)],
    ['no alg', () => forge({ alg: undefined })],
    ['alg as a list', () => forge({ alg: ['ES256'] })],
    ['a stranger’s key under our kid', () => forge({}, {}, stranger)],
    ['a stranger’s key without kid', () => forge({ kid: undefined }, {}, stranger)],
    ['jwk', () => forge({ jwk: strangersJwk() }, {}, stranger)],
    ['jwk beside a genuine signature', () => forge({ jwk: strangersJwk() })],
    ['jku', () => forge({ jku: `${http.upstream.url}/jwks.json`, kid: 'x' }, {}, stranger)],
    ['x5u', () => forge({ x5u: `${http.upstream.url}/cert.pem` })],
    ['x5c', () => forge({ x5c: ['MIIB'] })],
    ['a kid that is a path', () => forge({ kid: '../../../../dev/null' }, {}, stranger)],
    ['a kid that is SQL', () => forge({ kid: "' UNION SELECT 'x' --" }, {}, stranger)],
    ['a kid that is an object', () => forge({ kid: { toString: 'x' } })],
    ['a kid that every object has', () => forge({ kid: '__proto__' }, {}, stranger)],
    ['an unknown crit', () => forge({ crit: ['x-unknown'], 'x-unknown': 1 })],
    ['an empty crit', () => forge({ crit: [] })],
    ['b64 false', () => forge({ b64: false, crit: ['b64'] })],
    [
      'a JWE',
      () => `${encode({ alg: 'dir', enc: 'A256GCM' })}..${encode('iv')}.${encode('text')}.${encode('tag')}`,
    ],
    ['a nested token', () => signed(`${encode({ ...keys.header, cty: 'JWT' })}.${encode(forge())}`, keys.es)],
    ['zip', () => forge({ zip: 'DEF' })],
    ['a payload that is no object', () => forge({}, '"text"')],
    ['a header that is no object', () => forge('["ES256"]')],
    [
      'a DER signature',
      () => {
        const input = `${encode(keys.header)}.${encode(keys.claims)}`
        return `${input}.${signBytes('sha256', Buffer.from(input), keys.es).toString('base64url')}`
      },
    ],
    [
      'a signature of zeros',
      () => `${forge().replace(/[^.]*$/, '')}${Buffer.alloc(64).toString('base64url')}`,
    ],
    ['an empty signature', () => forge().replace(/[^.]*$/, '')],
    [
      'a changed claim under the old signature',
      () => {
        const [header, , signature] = forge().split('.')
        return `${header}.${encode({ ...keys.claims, sub: 'somebody' })}.${signature}`
      },
    ],
    ['four parts', () => `${forge()}.${encode('more')}`],
    ['two parts', () => forge().split('.').slice(0, 2).join('.')],
  ]

  it.each(forgeries)('C4.4 refuses %s', async (what, make) => {
    await expectInvalid(what, make())
  })
})

describe('T3.2 other spellings of one token', () => {
  it('C4.16 refuses every other spelling of the signature’s last character, padding and white space', async () => {
    const token = forge()
    expect((await call(http, token)).status).toBe(200)
    http.forget()
    const body = token.slice(0, -1)
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const others = alphabet
      .split('')
      .map((last) => body + last)
      .filter((each) => each !== token)
    const [header, claims, signature] = token.split('.')
    others.push(`${token}=`, `${token}==`, `${header}=.${claims}.${signature}`, `${token}.`, `.${token}`)
    others.push(`${header}.${claims}..${signature}`, token.replace('.', '. '), `${token}\t`.trimEnd() + '%3D')
    others.push(token.replaceAll('-', '+').replaceAll('_', '/') + '=')
    for (const other of others) await expectInvalid(other.slice(-8), other)
  })
})

describe('T3.2 the other signature that fits an ECDSA key', () => {
  /** Of P-256 (FIPS 186-5). */
  const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  /** The same r, and n − s: whoever sees a token can work it out, and it is as genuine. */
  const twin = (token: string): string => {
    const [header, claims, signature = ''] = token.split('.')
    const bytes = Buffer.from(signature, 'base64url')
    const s = ORDER - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
    const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')])
    return `${header}.${claims}.${other.toString('base64url')}`
  }
  const revoke = (token: string): Promise<Response> =>
    fetch(`${http.gateway.authUrl}/connect/revocation`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ token }),
    })

  it('C6.3.3 both open the door, and the revocation of either ends both: nothing is keyed by a signature', async () => {
    for (const shown of [0, 1] as const) {
      const token = forge({}, { jti: `twin-${shown}` })
      const both = [token, twin(token)] as const
      for (const each of both) expect((await call(http, each)).status).toBe(200)
      expect((await revoke(both[shown])).status).toBe(200)
      http.forget()
      for (const each of both) await expectInvalid(`twin ${shown}`, each)
    }
  })

  it('C6.3.3 one that was never shown before is refused when the other was revoked', async () => {
    const token = forge({}, { jti: 'twin-unseen' })
    expect((await revoke(token)).status).toBe(200)
    await expectInvalid('twin', twin(token))
  })
})

describe('T3.3 claims', () => {
  const claims: readonly (readonly [string, () => Json | string])[] = [
    ['no exp', () => ({ exp: undefined })],
    ['exp in the past', () => ({ exp: now() - 1 })],
    ['exp this very second', () => ({ exp: now() })],
    ['exp in ten years', () => ({ exp: now() + 315_360_000 })],
    ['exp beyond any number', () => `{"exp":1e400}`],
    ['exp as text', () => ({ exp: String(now() + 600) })],
    ['iat in the future', () => ({ iat: now() + 300, exp: now() + 600 })],
    ['no iat', () => ({ iat: undefined })],
    ['nbf in the future', () => ({ nbf: now() + 300 })],
    ['another issuer', () => ({ iss: 'https://evil.example' })],
    ['our issuer with a slash', () => ({ iss: `${http.gateway.authUrl}/` })],
    ['no issuer', () => ({ iss: undefined })],
    ['another audience', () => ({ aud: 'https://evil.example' })],
    ['no audience', () => ({ aud: undefined })],
    ['a client as audience', () => ({ aud: 'acme-books' })],
    ['an empty list of audiences', () => ({ aud: [] })],
    ['no sub', () => Object.fromEntries([['sub', undefined]])],
    ['no client_id', () => ({ client_id: undefined })],
    ['no jti', () => ({ jti: undefined })],
    ['scope as a list', () => ({ scope: ['fund.read', 'target:b/ACME'] })],
    ['two targets', () => ({ scope: 'fund.maintain target:b/GLOBEX target:b/ACME' })],
    ['a key twice', () => JSON.stringify(keys.claims).replace('{', `{"scope":"openid",`)],
    ['a key twice by an escape', () => JSON.stringify(keys.claims).replace('{', `{"sc\\u006fpe":"openid",`)],
    ['bytes that are no UTF-8', () => '{"sub":"\ud800"}'],
  ]

  it.each(claims)('C4.4 refuses %s', async (what, change) => {
    await expectInvalid(what, forge({}, change()))
  })

  it.each([
    ['no typ', { typ: undefined }],
    ['typ JWT', { typ: 'JWT' }],
    ['typ of a client assertion', { typ: 'client-authentication+jwt' }],
    ['typ of a logout token', { typ: 'logout+jwt' }],
  ] as const)('C4.4 refuses %s', async (what, change) => {
    await expectInvalid(what, forge(change))
  })

  it('C4.4 refuses an id_token and a refresh token as a bearer', async () => {
    await expectInvalid('id_token', issued.id_token ?? '')
    await expectInvalid('refresh token', issued.refresh_token ?? '')
    const idToken = signed(
      `${encode({ ...decode(issued.id_token ?? '', 0) })}.${encode({ ...keys.claims })}`,
      keys.rs,
    )
    await expectInvalid('id_token with the claims of an access token', idToken)
  })

  it('C4.4 refuses a token of another Postern, and client credentials', async () => {
    const foreign = await issueToken(memory.gateway, { scope: ALL_AT_ACME })
    await expectInvalid('foreign', foreign.access_token)
    await expectInvalid('credentials', basic('acme-books').slice('Basic '.length))
  })

  it('C4.14 reads one token after the word and a space, and nothing else', async () => {
    const good = issued.access_token
    const ask = async (value: string) => {
      const { status, headers } = await sendRaw(
        http.port,
        bytesOf({ target: TARGET, lines: `Authorization: ${value}\r\n` }),
      )
      return [
        value.replaceAll(good, 'T'),
        status,
        /error="(\w+)"/.exec(headers['www-authenticate'] ?? '')?.[1],
      ]
    }
    const none = [`bearer ${good}`, `BEARER ${good}`, good, `Basic ${good}`, `Token ${good}`]
    for (const value of none) expect(await ask(value)).toEqual([value.replaceAll(good, 'T'), 401, undefined])
    const malformed = [
      `Bearer\t${good}`,
      `Bearer ${good} ${good}`,
      `Bearer ${good},`,
      `Bearer "${good}"`,
      `Bearer ${good};x`,
      'Bearer x',
    ]
    for (const value of malformed)
      expect(await ask(value)).toEqual([value.replaceAll(good, 'T'), 401, 'invalid_token'])
    expect(http.reached()).toEqual([])
    expect(await ask(`Bearer   ${good}`)).toEqual(['Bearer   T', 200, undefined])
  })
})

describe('T3.4 what the cache may not forget', () => {
  const ask = async (token: string, target: string) => (await call(http, token, target)).status

  it('C4.16 looks at target and scope on every call of a token that it knows', async () => {
    const { access_token } = await issueToken(http.gateway, { scope: 'business.fund.list target:b/ACME' })
    const statuses = async () => [
      await ask(access_token, TARGET),
      await ask(access_token, '/api/1.0/b/GLOBEX/fund-data/fund-list'),
      await ask(access_token, '/api/1.0/b/INITECH/fund-data/fund-list'),
      await ask(access_token, '/api/1.0/f/ACME/SUPER1/member-data/member-list'),
      await ask(access_token, '/api/1.0/u/connect/userinfo'),
    ]
    const expected = [200, 404, 404, 401, 401]
    expect(await statuses()).toEqual(expected)
    expect(await statuses()).toEqual(expected)
    expect(http.reached()).toEqual(Array(2).fill(`GET ${TARGET}`))
  })

  it('C4.16 does not take a token for another one that begins or ends like it', async () => {
    const token = forge({}, { jti: 'cached' })
    expect(await ask(token, TARGET)).toBe(200)
    expect(await ask(forge({}, { jti: 'cached', scope: 'openid target:b/ACME' }), TARGET)).toBe(401)
    expect(await ask(forge({}, { jti: 'cached', scope: 'fund.read target:b/GLOBEX' }), TARGET)).toBe(404)
    expect(await ask(token, TARGET)).toBe(200)
  })

  it('C4.16 looks at revocation on every call: a known token is refused the moment it is revoked', async () => {
    const { access_token } = await issueToken(http.gateway, { scope: ALL_AT_ACME })
    const other = await issueToken(http.gateway, { scope: ALL_AT_ACME })
    expect(await ask(access_token, TARGET)).toBe(200)
    const { status } = await fetch(`${http.gateway.authUrl}/connect/revocation`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ token: access_token }),
    })
    expect(status).toBe(200)
    http.forget()
    await expectInvalid('revoked', access_token)
    expect(await ask(other.access_token, TARGET)).toBe(200)
  })

  it('C4.16 looks at the expiry on every call, to the second and without leeway', async () => {
    const later = movableClock()
    const timed = await attackUpstream({ clock: later })
    const ask = async (token: string) => (await call(timed, token)).status
    const { access_token, expires_in } = await issueToken(timed.gateway, { scope: ALL_AT_ACME })
    expect(await ask(access_token)).toBe(200)
    later.advance(expires_in * 1000 - 1)
    expect(await ask(access_token)).toBe(200)
    later.advance(1)
    expect([await ask(access_token), await ask(access_token)]).toEqual([401, 401])
    expect(timed.reached()).toHaveLength(2)
    await timed.close()
  })
})
