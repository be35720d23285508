import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { CompactEncrypt } from 'jose'
import { describe, expect, it } from 'vitest'
import type { TokenPolicy } from '../../../src/base/contracts/people/keys.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { importPublicKey, isSignedBy } from '../../../src/identity/keys/verify/signatures.ts'
import { createTokenVerifier } from '../../../src/identity/keys/verify/token-verifier.ts'
import { CLAIMS, clockAt, encode, forge, makeWorld, NOW, POLICY } from '../../support/keys-for-tests.ts'

const world = await makeWorld()
const explainer = createTokenVerifier(world.ring, clockAt(NOW))
const HEADER = { alg: 'ES256', typ: 'at+jwt', kid: world.kid.ES256 }
const { token: genuine, key } = await world.ring.sign(CLAIMS, { typ: 'at+jwt', algorithm: 'ES256' })

const verdict = (token: string, policy: TokenPolicy = POLICY): Promise<string> =>
  explainer.verify(token, policy).then(
    () => 'genuine',
    (thrown: unknown) => (thrown instanceof Fault ? thrown.code : `not a fault: ${String(thrown)}`),
  )

const withHeader = (header: object): string => forge(world, { ...HEADER, ...header }, CLAIMS)
const withClaims = (claims: object): string => forge(world, HEADER, { ...CLAIMS, ...claims })

describe('a genuine token', () => {
  it('C4.4 is believed; its claims are handed out, and the key that signed it', async () => {
    expect(await explainer.verify(genuine, POLICY)).toEqual({ claims: CLAIMS, key })
  })

  it('C6.1.8 verifies with either algorithm', async () => {
    const { token } = await world.ring.sign(CLAIMS, { typ: 'at+jwt', algorithm: 'RS256' })
    expect(await verdict(token)).toBe('genuine')
  })

  it.each(['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/At+Jwt'])(
    'may write its typ %s',
    async (typ) => {
      expect(await verdict(withHeader({ typ }))).toBe('genuine')
    },
  )

  it('may name the audience among others', async () => {
    expect(await verdict(withClaims({ aud: ['https://other.example', POLICY.audience] }))).toBe('genuine')
  })

  it('C11.2 may have any audience, or none, where the policy names none', async () => {
    for (const aud of ['https://other.example', undefined])
      expect(await verdict(withClaims({ aud }), { ...POLICY, audience: undefined })).toBe('genuine')
  })

  it('C11.2 is refused if it is bound to a key, unless the policy ignores that', async () => {
    for (const cnf of [{ jkt: 'x' }, { 'x5t#S256': 'x' }, {}, null]) {
      expect(await verdict(withClaims({ cnf }))).toBe('invalid_token')
      expect(await verdict(withClaims({ cnf }), { ...POLICY, confirmation: 'ignore' })).toBe('genuine')
    }
  })

  it('C4.4a T3.20 may be bound to a key by jkt alone, where that has to be proven', async () => {
    const jkt = 'a'.repeat(43)
    const proven: TokenPolicy = { ...POLICY, confirmation: 'prove' }
    expect(await verdict(withClaims({ cnf: { jkt } }), proven)).toBe('genuine')
    expect(await verdict(withClaims({}), proven)).toBe('genuine')
    for (const cnf of [
      ...[{}, [], null, 'a', 7, { jkt: 'a' }, { jkt: `${jkt}=` }, { jkt: [jkt] }, [jkt]],
      ...[{ 'x5t#S256': jkt }, { jkt, 'x5t#S256': jkt }, { jkt, kid: 'a' }],
    ])
      expect(await verdict(withClaims({ cnf }), proven), JSON.stringify(cnf)).toBe('invalid_token')
  })

  it('is what the forgeries below start from', async () => {
    expect(await verdict(forge(world, HEADER, CLAIMS))).toBe('genuine')
  })
})

describe('T3.1 forged headers and keys', () => {
  const hmacWith = (secret: string | Buffer): string => {
    const input = `${encode({ ...HEADER, alg: 'HS256' })}.${encode(CLAIMS)}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const publicKey = createPublicKey(world.privateKey.RS256)

  it.each(['none', 'None', 'NONE', ''])('refuses the algorithm %j', async (alg) => {
    const header = encode({ ...HEADER, alg })
    expect(await verdict(`${header}.${encode(CLAIMS)}.`)).toBe('invalid_token')
    expect(await verdict(`${header}.${encode(CLAIMS)}.AA`)).toBe('invalid_token')
    expect(await verdict(`${header}.${encode(CLAIMS)}`)).toBe('invalid_token')
  })

  it.each([
    ['PEM', publicKey.export({ type: 'spki', format: 'pem' })],
    ['DER', publicKey.export({ type: 'spki', format: 'der' })],
    ['JWK', JSON.stringify(publicKey.export({ format: 'jwk' }))],
  ])('refuses HS256 with the public key as secret (%s)', async (_, secret) => {
    expect(await verdict(hmacWith(secret))).toBe('invalid_token')
    expect(await verdict(hmacWith(secret), { ...POLICY, algorithms: ['HS256'] })).toBe('invalid_token')
  })

  it('refuses an algorithm of another family than the key that kid names', async () => {
    const header = { ...HEADER, kid: world.kid.RS256 }
    expect(await verdict(forge(world, header, CLAIMS))).toBe('invalid_token')
    expect(await verdict(forge(world, { ...HEADER, alg: 'RS256' }, CLAIMS, 'RS256'))).toBe('invalid_token')
    expect(await verdict(forge(world, { ...header, alg: 'PS256' }, CLAIMS, 'RS256'))).toBe('invalid_token')
  })

  it('refuses an algorithm that the policy does not name, though a key for it is there', async () => {
    expect(await verdict(genuine, { ...POLICY, algorithms: ['RS256'] })).toBe('invalid_token')
  })

  it.each([
    ['missing', undefined],
    ['a number', 256],
    ['a list', ['ES256']],
    ['lower case', 'es256'],
  ])('refuses an alg that is %s', async (_, alg) => {
    expect(await verdict(withHeader({ alg }))).toBe('invalid_token')
  })

  it('refuses a token that brings its own key', async () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const jwk = pair.publicKey.export({ format: 'jwk' })
    const attacker = { ...world, privateKey: { ...world.privateKey, ES256: pair.privateKey } }
    expect(await verdict(forge(attacker, { ...HEADER, jwk }, CLAIMS))).toBe('invalid_token')
    expect(await verdict(forge(attacker, { alg: 'ES256', typ: 'at+jwt', jwk }, CLAIMS))).toBe('invalid_token')
    expect(await verdict(forge(attacker, HEADER, CLAIMS))).toBe('invalid_token')
  })

  it.each([
    ['jwk', {}],
    ['jwk', null],
    ['jku', 'https://evil.example/jwks.json'],
    ['x5u', 'https://evil.example/cert.pem'],
    ['x5c', ['MIIB']],
    ['crit', ['exp']],
    ['crit', []],
    ['b64', false],
    ['b64', true],
    ['zip', 'DEF'],
    ['enc', 'A256GCM'],
    ['cty', 'JWT'],
  ])('refuses the header %s = %j, though the signature is genuine', async (member, value) => {
    expect(await verdict(withHeader({ [member]: value }))).toBe('invalid_token')
  })

  it('refuses an unencoded payload that b64 and crit announce', async () => {
    expect(await verdict(withHeader({ crit: ['b64'], b64: false }))).toBe('invalid_token')
  })

  it.each([
    '../../../dev/null',
    '/dev/null',
    "' UNION SELECT 'secret' --",
    '__proto__',
    'constructor',
    'toString',
    '',
    '\u0000',
    'ES256-1.jwk',
    7,
    null,
    ['x'],
    undefined,
  ])('refuses the kid %j', async (kid) => {
    expect(await verdict(withHeader({ kid }))).toBe('invalid_token')
  })

  it('refuses a JWE, even one made for the public key', async () => {
    const jwe = await new CompactEncrypt(Buffer.from(genuine))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', typ: 'at+jwt', kid: world.kid.RS256 })
      .encrypt(publicKey)
    expect(await verdict(jwe)).toBe('invalid_token')
  })

  it('refuses a token within a token', async () => {
    expect(await verdict(forge(world, HEADER, genuine))).toBe('invalid_token')
    expect(await verdict(forge(world, HEADER, JSON.stringify(genuine)))).toBe('invalid_token')
  })

  it('refuses an ES256 signature in DER or of zeros', async () => {
    const [header, payload] = genuine.split('.') as [string, string]
    expect(await verdict(`${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`)).toBe(
      'invalid_token',
    )
    expect(await verdict(`${header}.${payload}.${Buffer.alloc(0).toString('base64url')}`)).toBe(
      'invalid_token',
    )
    expect(await verdict(`${header}.${payload}.${encode('0E\u0002\u0001\u0001')}`)).toBe('invalid_token')
  })
})

describe('T3.2 one spelling of one token', () => {
  const [header, payload, signature] = genuine.split('.') as [string, string, string]

  it('refuses every other last character that decodes to the same bytes', async () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const bytes = Buffer.from(signature, 'base64url')
    const spellings = Array.from(alphabet)
      .map((last) => signature.slice(0, -1) + last)
      .filter((other) => other !== signature && Buffer.from(other, 'base64url').equals(bytes))
    expect(spellings).toHaveLength(15)
    for (const other of spellings)
      expect(await verdict(`${header}.${payload}.${other}`)).toBe('invalid_token')
  })

  it.each([
    ['padding', `${genuine}==`],
    ['a trailing space', `${genuine} `],
    ['a leading space', ` ${genuine}`],
    ['a line feed', `${genuine}\n`],
    ['a tab within', `${header}.${payload}.${signature.slice(0, 8)}\t${signature.slice(8)}`],
    [
      'the standard alphabet',
      `${header}.${payload}.${Buffer.from(signature, 'base64url').toString('base64')}`,
    ],
    ['a fourth part', `${genuine}.`],
    ['a fourth part with text', `${genuine}.AAAA`],
    ['a leading dot', `.${genuine}`],
    ['no payload', `${header}..${signature}`],
    ['no header', `.${payload}.${signature}`],
    ['nothing', ''],
    ['dots', '..'],
    ['other characters', `${header}.${payload}.${signature}é`],
    ['NUL', `${genuine}\0`],
  ])('refuses %s', async (_, token) => {
    expect(await verdict(token)).toBe('invalid_token')
  })

  it('refuses a token of more than 16 KiB without decoding it', async () => {
    expect(await verdict(withClaims({ filler: 'x'.repeat(16 * 1024) }))).toBe('invalid_token')
  })
})

describe('T3.3 claims that do not hold', () => {
  it.each([
    ['no exp', { exp: undefined }],
    ['exp as text', { exp: String(NOW + 60) }],
    ['exp null', { exp: null }],
    ['exp reached', { exp: NOW }],
    ['exp past', { exp: NOW - 1 }],
    ['exp negative', { exp: -1 }],
    ['exp a century away', { exp: NOW + 100 * 365 * 86_400 }],
    ['exp over a day away', { exp: NOW + 86_400 + 10 }],
    ['exp in milliseconds', { exp: (NOW + 60) * 1000 }],
    ['no iat', { iat: undefined }],
    ['iat as text', { iat: '1' }],
    ['iat in the future', { iat: NOW + 30 }],
    ['nbf in the future', { nbf: NOW + 30 }],
    ['nbf as text', { nbf: '0' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['an issuer with a slash more', { iss: `${POLICY.issuer}/` }],
    ['an issuer in a list', { iss: [POLICY.issuer] }],
    ['no issuer', { iss: undefined }],
    ['another audience', { aud: 'https://other.example' }],
    ['an audience that begins alike', { aud: `${POLICY.audience}.evil.example` }],
    ['the client as audience, as an id_token has it', { aud: 'acme-books' }],
    ['an empty audience', { aud: [] }],
    ['an audience in an object', { aud: { 0: POLICY.audience } }],
    ['no audience', { aud: undefined }],
  ])('refuses %s', async (_, claims) => {
    expect(await verdict(withClaims(claims))).toBe('invalid_token')
  })

  it.each(['1e999', '-1e999', 'true', '{}', '[1900000000]'])('refuses exp = %s', async (exp) => {
    const text = JSON.stringify(CLAIMS).replace(/"exp":\d+/, `"exp":${exp}`)
    expect(text).toContain(exp)
    expect(await verdict(forge(world, HEADER, text))).toBe('invalid_token')
  })

  it.each(['JWT', 'jwt', 'rt+jwt', 'id+jwt', 'logout+jwt', 'at+jwt ', 'text/at+jwt', '', undefined, null, 3])(
    'refuses the typ %j',
    async (typ) => {
      expect(await verdict(withHeader({ typ }))).toBe('invalid_token')
    },
  )

  it.each([
    ['iss twice', `{"iss":"https://evil.example",${JSON.stringify(CLAIMS).slice(1)}`],
    ['exp twice', `${JSON.stringify(CLAIMS).slice(0, -1)},"exp":${NOW + 900}}`],
    ['exp twice, once escaped', `${JSON.stringify(CLAIMS).slice(0, -1)},"\\u0065xp":${NOW + 900}}`],
    ['a duplicate deep within', `${JSON.stringify(CLAIMS).slice(0, -1)},"a":{"b":1,"b":2}}`],
    ['something after the object', `${JSON.stringify(CLAIMS)}{}`],
    ['a byte order mark', `\uFEFF${JSON.stringify(CLAIMS)}`],
    ['a list', JSON.stringify([CLAIMS])],
    ['null', 'null'],
    ['no JSON', 'iss=https://id.example'],
    [
      'nesting without end',
      `${JSON.stringify(CLAIMS).slice(0, -1)},"a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
    ],
  ])('refuses a payload with %s', async (_, payload) => {
    expect(await verdict(forge(world, HEADER, payload))).toBe('invalid_token')
  })

  it('refuses a header with two algorithms', async () => {
    const header = `{"alg":"none",${JSON.stringify(HEADER).slice(1)}`
    expect(await verdict(forge(world, header, CLAIMS))).toBe('invalid_token')
  })

  it('refuses a payload that is not UTF-8', async () => {
    const payload = Buffer.from(JSON.stringify({ ...CLAIMS, sub: 'é' }), 'latin1').toString('base64url')
    expect(await verdict(`${encode(HEADER)}.${payload}.${encode('x'.repeat(64))}`)).toBe('invalid_token')
  })

  it('refuses a genuine signature under other claims', async () => {
    const [header, , signature] = genuine.split('.') as [string, string, string]
    expect(await verdict(`${header}.${encode({ ...CLAIMS, sub: 'carol' })}.${signature}`)).toBe(
      'invalid_token',
    )
  })
})

describe('time', () => {
  const at = (seconds: number, token: string, leeway = 0): Promise<string> =>
    createTokenVerifier(world.ring, clockAt(seconds))
      .verify(token, { ...POLICY, leeway })
      .then(
        () => 'genuine',
        (thrown: unknown) => (thrown as Fault).code,
      )

  it('C4.16 gives own tokens no leeway on expiry, to the millisecond', async () => {
    expect(await at(CLAIMS.exp - 0.001, genuine)).toBe('genuine')
    expect(await at(CLAIMS.exp, genuine)).toBe('invalid_token')
  })

  it('C4.16 gives foreign tokens the configured leeway and no more', async () => {
    expect(await at(CLAIMS.exp + 59, genuine, 60)).toBe('genuine')
    expect(await at(CLAIMS.exp + 60, genuine, 60)).toBe('invalid_token')
  })

  it('T5.6 takes a token that a node whose clock is 5 s ahead has just issued', async () => {
    expect(await at(CLAIMS.iat - 5, genuine)).toBe('genuine')
    expect(await at(CLAIMS.iat - 6, genuine)).toBe('invalid_token')
  })

  it('lets a policy allow a longer life', async () => {
    const token = withClaims({ iat: NOW, exp: NOW + 7 * 86_400 })
    expect(await verdict(token)).toBe('invalid_token')
    expect(await verdict(token, { ...POLICY, longestLife: 7 * 86_400 })).toBe('genuine')
  })

  it('T3.12 refuses a token of a longer life to its end, not only while the end is far', async () => {
    const old = { iat: NOW - 6.5 * 86_400, exp: NOW + 0.5 * 86_400 }
    expect(await verdict(withClaims(old))).toBe('invalid_token')
    expect(await verdict(withClaims({ ...old, iat: old.exp - 86_400 }))).toBe('genuine')
  })
})

describe('what is told', () => {
  it('C2.6 puts no piece of the token into the fault', async () => {
    const token = withClaims({ iss: 'https://evil.example' })
    const fault = await explainer.verify(token, POLICY).catch((thrown: unknown) => thrown as Fault)
    const told = JSON.stringify(fault, Object.getOwnPropertyNames(fault))
    for (const part of token.split('.')) expect(told).not.toContain(part)
    expect(told).not.toContain('evil')
  })

  it('C4.15 passes on that the keys cannot be reached, and never lets through', async () => {
    const failing = createTokenVerifier(
      {
        find: () => Promise.reject(new Fault('token_judge_unavailable')),
        findLocally: () => Promise.resolve(undefined),
      },
      clockAt(NOW),
    )
    await expect(failing.verify(genuine, POLICY)).rejects.toMatchObject({ code: 'token_judge_unavailable' })
  })
  it('C4.15 tells that too many signatures wait, and checks none for a client that has left', async () => {
    const { token } = await world.ring.sign(CLAIMS, { typ: 'at+jwt', algorithm: 'RS256' })
    const publicKey = await importPublicKey(world.jwk.RS256, 'RS256')
    const checkMany = (count: number) =>
      Promise.allSettled(Array.from({ length: count }, () => isSignedBy(token, publicKey, 'RS256')))
    const some = checkMany(1_000)
    await expect(explainer.verify(genuine, POLICY, { gone: true })).rejects.toMatchObject({
      code: 'client_gone',
    })
    const more = checkMany(6_000)
    await expect(explainer.verify(genuine, POLICY)).rejects.toMatchObject({
      code: 'token_judge_unavailable',
      facts: { detail: 'too many signatures wait to be checked' },
    })
    await Promise.all([some, more])
    expect(await verdict(genuine)).toBe('genuine')
  })
})
