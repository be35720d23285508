import { createHmac, createPublicKey, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/base/contracts/people/people.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { assertionMethod } from '../../../src/extensions/fapi/client-assertion.ts'
import { type ClientKeys, openClientKeySets } from '../../../src/extensions/fapi/client-keys.ts'
import type { SecuredClient } from '../../../src/extensions/fapi/schema.ts'
import { holdersOf } from '../../../src/identity/dependencies/dependencies.ts'
import {
  assertedBy,
  assertion,
  type AssertionOptions,
  type ClientKey,
  makeClientKey,
} from '../../support/client-assertions.ts'
import {
  basic,
  client,
  ISSUER,
  openTestIdentity,
  requestToken,
  type TestIdentity,
} from '../../support/identity-under-test.ts'

const key = await makeClientKey('ES256', { kid: 'one' })
const stranger = await makeClientKey('ES256', { kid: 'one' })

const signing = (of: ClientKey = key, more: SecuredClient & Partial<Client> = {}): Client =>
  client('acme-books', { authentication: ['private_key_jwt'], secretHashes: [], jwks: [of.jwk], ...more })

const open = (of?: ClientKey, more?: SecuredClient & Partial<Client>): TestIdentity =>
  openTestIdentity({ clients: [signing(of, more), client('other')] })

/** A token request of a client that has an assertion and nothing else. */
const present = (service: TestIdentity, jws: string, params: Readonly<Record<string, string>> = {}) =>
  requestToken(service, { ...assertedBy(jws), ...params }, { authorization: '' })

/** The same with an assertion of this time, changed. */
const presentOf = async (service: TestIdentity, options: AssertionOptions = {}, by: ClientKey = key) =>
  present(service, await assertion(by, { now: service.clock.at, ...options }))

const REFUSED = {
  error: 'invalid_client',
  error_description: 'Client authentication failed. Check the client id and secret.',
}

describe('C6.1.2 a client that signs an assertion', () => {
  it.each(['ES256', 'PS256', 'RS256', 'Ed25519'])('C6.1.2 gets tokens with a key of %s', async (alg) => {
    const own = await makeClientKey(alg)
    const { status, json } = await presentOf(open(own), {}, own)
    expect([status, json.error_description]).toEqual([200, undefined])
  })

  it.each([
    ['EdDSA', { alg: 'EdDSA' }],
    ['typ JWT', { typ: 'JWT' }],
    ['typ jwt', { typ: 'jwt' }],
    ['typ client-authentication+jwt', { typ: 'client-authentication+jwt' }],
    ['its media type', { typ: 'application/client-authentication+jwt' }],
    ['a kid', { kid: 'one' }],
  ])('C6.1.2 %s in the header counts', async (_, header) => {
    const own = await makeClientKey('alg' in header ? 'Ed25519' : 'ES256', { kid: 'one' })
    expect((await presentOf(open(own), { header }, own)).status).toBe(200)
  })

  it.each([
    ['the issuer', ISSUER],
    ['the token endpoint', `${ISSUER}/connect/token`],
    ['a list of them', [`${ISSUER}/connect/token`, ISSUER]],
  ])('C6.1.2 with %s as audience', async (_, audience) => {
    expect((await presentOf(open(), { audience })).status).toBe(200)
  })

  it('C6.1.2 an equal client_id beside it is accepted, another one is invalid_client', async () => {
    const service = open()
    const jws = await assertion(key, { now: service.clock.at })
    expect((await present(service, jws, { client_id: 'other' })).json).toEqual(REFUSED)
    expect((await present(service, jws, { client_id: 'acme-books' })).status).toBe(200)
  })

  it('C6.1.2 beside a secret it is invalid_request, and not used up', async () => {
    const service = open()
    const jws = await assertion(key, { now: service.clock.at })
    const both = await requestToken(service, assertedBy(jws), { authorization: basic('acme-books') })
    expect(both.json).toMatchObject({ error: 'invalid_request' })
    expect((await present(service, jws, { client_secret: 'x' })).json.error).toBe('invalid_request')
    expect((await present(service, jws)).status).toBe(200)
  })

  it('C6.1.2 a client may not use it unless it is configured so', async () => {
    const secretHashes = ['sha256:acme-books-secret']
    const service = open(key, { secretHashes, authentication: ['client_secret_basic'] })
    expect((await presentOf(service)).json).toEqual(REFUSED)
    expect((await requestToken(service)).status).toBe(200)
    expect((await requestToken(open())).json).toEqual(REFUSED)
  })

  it('C6.1.2 a disabled client is refused as an unknown one is', async () => {
    expect((await presentOf(open(key, { disabled: true }))).json).toEqual(REFUSED)
    expect((await presentOf(open(), { client: 'nobody' })).json).toEqual(REFUSED)
  })
})

describe('C6.1.2 claims of an assertion that is signed rightly', () => {
  const now = openTestIdentity().clock.at / 1000

  it.each<[string, object]>([
    ['exp', { exp: undefined }],
    ['exp', { exp: now }],
    ['exp', { exp: now + 65 * 60 + 1 }],
    ['exp', { exp: 'soon' }],
    ['iat', { iat: now + 11 }],
    ['iat', { iat: 'now' }],
    ['nbf', { nbf: now + 11 }],
    ['nbf', { nbf: {} }],
    ['jti', { jti: undefined }],
    ['jti', { jti: '' }],
    ['jti', { jti: 7 }],
    ['jti', { jti: 'x'.repeat(257) }],
    ['aud', { aud: undefined }],
    ['aud', { aud: [] }],
    ['aud', { aud: {} }],
    ['aud', { aud: `${ISSUER}/` }],
    ['aud', { aud: `${ISSUER}/connect/revocation` }],
  ])('C6.1.2 the description names the claim %s: %j', async (claim, claims) => {
    const service = open()
    const { status, json } = await presentOf(service, { claims })
    expect([status, json.error]).toEqual([400, 'invalid_client'])
    expect(json.error_description).toContain(`The claim ${claim} `)
    expect(service.tokens[0]?.fault?.code).toBe('assertion_refused')
  })

  it('C6.1.2 the limits themselves count', async () => {
    const service = open()
    const claims = { exp: now + 65 * 60, iat: now + 10, nbf: now + 10, jti: 'x'.repeat(256) }
    expect((await presentOf(service, { claims })).status).toBe(200)
    expect((await presentOf(service, { claims: { exp: now + 1, iat: undefined } })).status).toBe(200)
  })
})

describe('C6.1.9 an assertion of a client that is held to FAPI 2.0', () => {
  const held = (of: ClientKey = key): TestIdentity => open(of, { profile: 'fapi2' })

  it('C6.1.9 has the issuer as its only audience, as a text', async () => {
    const good = await presentOf(held())
    expect(good.json.error).not.toBe('invalid_client')
    for (const audience of [`${ISSUER}/connect/token`, [ISSUER], [ISSUER, `${ISSUER}/connect/token`]]) {
      const { json } = await presentOf(held(), { audience })
      expect(json.error_description, String(audience)).toContain('The claim aud ')
    }
  })

  it('C6.1.9 is not signed by RS256', async () => {
    const [rsa, pss] = [await makeClientKey('RS256'), await makeClientKey('PS256')]
    expect((await presentOf(held(rsa), {}, rsa)).json).toEqual(REFUSED)
    expect((await presentOf(held(pss), {}, pss)).json.error).not.toBe('invalid_client')
  })
})

describe('C6.1.2 an assertion counts once', () => {
  const REPLAYED = {
    error: 'invalid_client',
    error_description: expect.stringContaining('used before') as unknown,
  }

  it('C6.1.2 used again it is refused, also while it is good, and the log tells why', async () => {
    const service = open()
    const jws = await assertion(key, { now: service.clock.at })
    expect((await present(service, jws)).status).toBe(200)
    service.clock.at += 59_000
    expect((await present(service, jws)).json).toEqual(REPLAYED)
    expect(service.tokens.at(-1)?.fault?.code).toBe('assertion_replayed')
  })

  it('C6.1.2 another assertion with the jti is refused, of another client it is not', async () => {
    const clients = [signing(), signing(stranger, { id: 'second' })]
    const service = openTestIdentity({ clients })
    const claims = { jti: 'once' }
    expect((await presentOf(service, { claims })).status).toBe(200)
    expect((await presentOf(service, { claims: { ...claims, exp: 2e9 } })).json.error).toBe('invalid_client')
    const second = await presentOf(service, { client: 'second', claims }, stranger)
    expect(second.json.error).toBe('invalid_grant')
  })

  it('C6.1.2 it is kept as a hash, until ten seconds after its end', async () => {
    const service = open()
    const jti = randomUUID()
    const exp = Math.floor(service.clock.at / 1000) + 60
    await presentOf(service, { claims: { jti, exp } })
    const kept = await service.store.list('assertion')
    expect(kept).toMatchObject([{ key: expect.stringMatching(/^[\w-]{43}$/), expiresAt: (exp + 10) * 1000 }])
    expect(JSON.stringify(kept)).not.toContain(jti)
  })

  it('C6.1.2 a request that fails for another reason later on has used it up', async () => {
    const service = open()
    const jws = await assertion(key, { now: service.clock.at })
    expect((await present(service, jws, { password: 'wrong' })).json.error).toBe('invalid_grant')
    expect((await present(service, jws)).json).toEqual(REPLAYED)
  })

  it('C6.1.0 a refused proof of possession does not use it up: the request is sent again with a nonce', async () => {
    const service = open()
    const jws = await assertion(key, { now: service.clock.at })
    const refused = await requestToken(service, assertedBy(jws), { authorization: '', dpop: 'nonsense' })
    expect(refused.json.error).toBe('invalid_dpop_proof')
    expect((await present(service, jws)).status).toBe(200)
  })

  it('C6.1.2 while the store is down it is 503, and can be sent again', async () => {
    const service = open()
    const jws = await assertion(key, { now: service.clock.at })
    const create = service.store.create.bind(service.store)
    service.store.create = () => Promise.reject(new Fault('identity_unavailable'))
    expect((await present(service, jws)).status).toBe(503)
    service.store.create = create
    expect((await present(service, jws)).status).toBe(200)
  })

  it('C6.1.2 while keys cannot be read it is 503', async () => {
    const remote = { authentication: ['private_key_jwt'], jwksUri: 'https://app.example/keys' } as const
    const service = openTestIdentity({ clients: [client('acme-books', { ...remote })] })
    expect((await presentOf(service)).status).toBe(503)
  })
})

/** A JWT as somebody makes it who has no key of the client. */
const forged = (header: object, payload: object, sign: (input: string) => string): string => {
  const [first, second] = [header, payload].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  const input = `${first}.${second}`
  return `${input}.${sign(input)}`
}

describe('T3.24 an assertion that somebody else made', () => {
  const claimsAt = (at: number) => ({
    iss: 'acme-books',
    sub: 'acme-books',
    aud: ISSUER,
    exp: at / 1000 + 60,
    jti: randomUUID(),
  })
  const pem = createPublicKey({ key: { ...key.jwk }, format: 'jwk' }).export({ type: 'spki', format: 'pem' })

  it.each<[string, (at: number) => Promise<string> | string]>([
    ['alg none', (at) => forged({ alg: 'none' }, claimsAt(at), () => '')],
    ['alg None', (at) => forged({ alg: 'None' }, claimsAt(at), () => 'AA')],
    [
      'HS256 with the public key',
      (at) =>
        forged({ alg: 'HS256', kid: 'one' }, claimsAt(at), (input) =>
          createHmac('sha256', pem).update(input).digest('base64url'),
        ),
    ],
    ['another key', (at) => assertion(stranger, { now: at })],
    ['another key under the kid', (at) => assertion(stranger, { now: at, header: { kid: 'one' } })],
    ['its own jwk', (at) => assertion(stranger, { now: at, header: { jwk: stranger.jwk } })],
    ['a jku', (at) => assertion(stranger, { now: at, header: { jku: 'https://evil.example/' } })],
    ['an x5u', (at) => assertion(stranger, { now: at, header: { x5u: 'https://evil.example/' } })],
    ['an x5c', (at) => assertion(stranger, { now: at, header: { x5c: ['AA'] } })],
    ['a kid that is a path', (at) => assertion(key, { now: at, header: { kid: '../../etc/passwd' } })],
    ['a kid that is a list', (at) => assertion(key, { now: at, header: { kid: ['one'] } })],
    ['crit', (at) => assertion(key, { now: at, header: { crit: ['exp'], exp: 1 } }).catch(() => 'a.b.c')],
    ['the typ of an access token', (at) => assertion(key, { now: at, header: { typ: 'at+jwt' } })],
    ['the typ of a proof', (at) => assertion(key, { now: at, header: { typ: 'dpop+jwt' } })],
    ['another issuer', (at) => assertion(key, { now: at, claims: { iss: 'other' } })],
    ['another subject', (at) => assertion(key, { now: at, claims: { sub: 'other' } })],
    ['no subject', (at) => assertion(key, { now: at, claims: { sub: undefined, iss: undefined } })],
    ['a signature too many', async (at) => `${await assertion(key, { now: at })}A`],
    ['a fourth part', async (at) => `${await assertion(key, { now: at })}.e30`],
    ['no JWT', () => 'nonsense'],
    ['16 KiB', (at) => assertion(key, { now: at, claims: { pad: 'x'.repeat(16_384) } })],
  ])('T3.24 %s: the one invalid_client, and nothing is written', async (_, make) => {
    const service = open()
    const { status, json } = await present(service, await make(service.clock.at))
    expect([status, json]).toEqual([400, REFUSED])
    expect(service.tokens[0]?.fault?.facts.detail).toMatch(/^client_assertion: /)
    expect(await service.store.list('assertion')).toEqual([])
  })

  it('T3.24 another client_assertion_type, and one without an assertion', async () => {
    const service = open()
    const { client_assertion } = assertedBy(await assertion(key, { now: service.clock.at }))
    const type = 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer'
    for (const params of [{ client_assertion, client_assertion_type: type }, { client_assertion }])
      expect((await requestToken(service, params, { authorization: '' })).json).toEqual(REFUSED)
    const alone = { client_assertion_type: assertedBy('').client_assertion_type }
    expect((await requestToken(service, alone, { authorization: '' })).json).toEqual(REFUSED)
  })

  it('T3.24 an audience beside ours is refused: whoever else gets the assertion must not use it here', async () => {
    const audiences = [
      [ISSUER, 'https://evil.example'],
      ['https://evil.example', `${ISSUER}/connect/token`],
      [`${ISSUER}.evil.example`],
      [`${ISSUER}/connect/token/../token`],
      [`${ISSUER}/CONNECT/token`],
      [ISSUER.toUpperCase()],
    ]
    for (const audience of audiences) {
      const { json } = await presentOf(open(), { audience })
      expect(json.error_description, audience.join()).toContain('The claim aud ')
    }
  })

  it('T3.9 a signature is checked whether or not there is such a client', async () => {
    const checked: string[] = []
    const service = open()
    const { deps, identity } = service
    const keys = openClientKeySets(deps).readBy(deps.outbound)
    const clientKeys: ClientKeys = {
      haveSigned: (...args) => {
        checked.push(args[1]?.id ?? 'nobody')
        return keys.haveSigned(...args)
      },
    }
    const methods = [assertionMethod({ ...deps, people: holdersOf(deps.people), clientKeys })]
    Object.assign(identity.dependencies, { security: { ...deps.security, methods } })
    for (const id of ['acme-books', 'other', 'unknown'])
      expect((await presentOf(service, { client: id }, stranger)).json).toEqual(REFUSED)
    expect(checked).toEqual(['acme-books', 'nobody', 'nobody'])
  })
})
