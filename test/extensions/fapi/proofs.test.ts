import { generateKeyPairSync } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { describe, expect, it } from 'vitest'
import type { ProofPurpose } from '../../../src/extensions/fapi/proof.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { openNonces } from '../../../src/extensions/fapi/nonces.ts'
import { nonceRules, openProofVerifier } from '../../../src/extensions/fapi/proofs.ts'
import { createDeriver } from '../../../src/identity/keys/signing/key-place.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { hashOf, prover, signJwt } from '../../support/prover.ts'

const HERE: ProofPurpose = { method: 'POST', url: 'https://auth.example/connect/token' }
const FOR_HERE = { htm: HERE.method, htu: HERE.url }

function setUp(mode: 'optional' | 'required' | 'off' = 'optional') {
  // In the middle of a minute.
  const clock = movableClock(Date.UTC(2026, 0, 15, 12, 0, 30))
  const nonces = openNonces(createDeriver('a secret'), clock)
  const verifier = openProofVerifier({ clock, ...nonceRules(mode, nonces) })
  return { clock, nonces, verifier, key: prover(clock) }
}

/** The fault of a proof that does not hold. */
function faultOf(verify: () => unknown): Fault {
  try {
    verify()
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown
    throw thrown
  }
  throw new Error('it was accepted')
}

describe('C6.1.0: a proof', () => {
  it('C6.1.0: is accepted with each algorithm, and gives the thumbprint of its key (RFC 7638)', async () => {
    const { clock, verifier } = setUp()
    for (const algorithm of ['ES256', 'PS256', 'Ed25519', 'EdDSA'] as const) {
      const key = prover(clock, algorithm)
      const jkt = await calculateJwkThumbprint(key.jwk)
      // The second one by a key that is known.
      expect(verifier.verify(key.prove(FOR_HERE), HERE).jkt).toBe(jkt)
      expect(verifier.verify(key.prove(FOR_HERE), HERE).jkt).toBe(jkt)
    }
  })

  it('C6.1.0: has an id of its key and its jti, so that the same jti of two keys is no replay', () => {
    const { clock, key, verifier } = setUp()
    const proof = key.prove({ ...FOR_HERE, jti: 'once' })
    const { id } = verifier.verify(proof, HERE)
    expect(verifier.verify(proof, HERE).id).toBe(id)
    const other = prover(clock)
    expect(verifier.verify(other.prove({ ...FOR_HERE, jti: 'once' }), HERE).id).not.toBe(id)
  })

  it('C6.1.0: counts for one method and one address, whose query and fragment play no part', () => {
    const { key, verifier } = setUp()
    const refused = (claims: object): void => {
      expect(faultOf(() => verifier.verify(key.prove({ ...FOR_HERE, ...claims }), HERE)).code).toBe(
        'invalid_dpop_proof',
      )
    }
    refused({ htm: 'GET' })
    refused({ htm: 'post' })
    refused({ htm: undefined })
    for (const htu of [
      'https://auth.example/connect/revocation',
      'https://auth.example/connect/token/x',
      'https://evil.example/connect/token',
      'https://auth.example.evil.example/connect/token',
      'https://auth.example@evil.example/connect/token',
      'https://evil.example@auth.example/connect/token',
      'http://auth.example/connect/token',
      'https://auth.example:8443/connect/token',
      'https://auth.example/CONNECT/token',
      'https://auth.example/connect%2Ftoken',
      'https://auth.example//connect/token',
      'https://auth.example/connect/token/',
      'https://auth.example/connect/token/.',
      'https://auth.example/connect/token/x/..',
      'https://auth.example/connect/token//',
      'https:\\\\auth.example\\connect\\token',
      ' https://auth.example/connect/token',
      '/connect/token',
      '',
      7,
      undefined,
    ])
      refused({ htu })
    for (const htu of [
      'https://auth.example/connect/token?a=b',
      'https://auth.example/connect/token#c',
      'HTTPS://AUTH.example:443/connect/token',
      'https://auth.example/connect/%74oken',
      'https://auth.example/a/../connect/./token',
    ])
      expect(verifier.verify(key.prove({ ...FOR_HERE, htu }), HERE).jkt).toBe(key.jkt)
  })

  it('C6.1.0: of an address with a slash at its end counts there alone', () => {
    const { key, verifier } = setUp()
    const there = { ...HERE, url: `${HERE.url}/` }
    for (const path of ['/connect/token/', '/connect/token/.', '/connect/token/x/..'])
      expect(verifier.verify(key.prove({ ...FOR_HERE, htu: `https://auth.example${path}` }), there).jkt).toBe(
        key.jkt,
      )
    expect(faultOf(() => verifier.verify(key.prove(FOR_HERE), there)).code).toBe('invalid_dpop_proof')
    const root = { ...HERE, url: 'https://auth.example/' }
    for (const htu of ['https://auth.example', 'https://auth.example/', 'https://auth.example/..'])
      expect(verifier.verify(key.prove({ ...FOR_HERE, htu }), root).jkt).toBe(key.jkt)
  })

  it('C4.4: has the hash of the access token that it comes with', () => {
    const { key, verifier } = setUp()
    const purpose = { ...HERE, token: 'a.b.c' }
    for (const ath of [undefined, '', hashOf('a.b.d'), `${hashOf('a.b.c')}=`])
      expect(faultOf(() => verifier.verify(key.prove({ ...FOR_HERE, ath }), purpose)).code).toBe(
        'invalid_dpop_proof',
      )
    expect(verifier.verify(key.prove({ ...FOR_HERE, ath: hashOf('a.b.c') }), purpose).jkt).toBe(key.jkt)
  })

  it('C4.4: of another key than that of the token makes the token a bad one', () => {
    const { clock, key, verifier } = setUp()
    const other = prover(clock).prove(FOR_HERE)
    expect(faultOf(() => verifier.verify(other, { ...HERE, jkt: key.jkt })).code).toBe('invalid_token')
    expect(verifier.verify(key.prove(FOR_HERE), { ...HERE, jkt: key.jkt }).jkt).toBe(key.jkt)
  })

  it('C6.1.0: has a jti of at most 256 characters, and an iat', () => {
    const { key, verifier } = setUp()
    for (const claims of [{ jti: undefined }, { jti: '' }, { jti: 'x'.repeat(257) }, { jti: 7 }])
      expect(faultOf(() => verifier.verify(key.prove({ ...FOR_HERE, ...claims }), HERE)).code).toBe(
        'invalid_dpop_proof',
      )
    for (const iat of [undefined, '1768478430', null])
      expect(faultOf(() => verifier.verify(key.prove({ ...FOR_HERE, iat }), HERE)).code).toBe(
        'invalid_dpop_proof',
      )
    expect(verifier.verify(key.prove({ ...FOR_HERE, jti: 'x'.repeat(256) }), HERE).jkt).toBe(key.jkt)
  })
})

describe('C6.1.0: the time of a proof', () => {
  it('C6.1.0: is 60 seconds before now to 10 seconds after', () => {
    const { clock, key, verifier } = setUp('off')
    const at = (seconds: number): string => key.prove({ ...FOR_HERE, iat: clock.now() / 1000 + seconds })
    for (const seconds of [-60, 0, 10])
      expect(verifier.verify(at(seconds), HERE).expiresAt).toBe(clock.now() + (seconds + 60) * 1000 + 1)
    for (const seconds of [-61, 11, 1e9, -1e9])
      expect(faultOf(() => verifier.verify(at(seconds), HERE)).code).toBe('invalid_dpop_proof')
  })

  it.each(['optional', 'off', 'required'] as const)(
    'C4.4a: an exp that has passed and an nbf to come are refused, with a nonce too (nonces: %s)',
    (mode) => {
      const { clock, key, nonces, verifier } = setUp(mode)
      const now = clock.now() / 1000
      const prove = (claims: object): string =>
        key.prove({ ...FOR_HERE, ...(mode !== 'off' && { nonce: nonces.current() }), ...claims })
      for (const claims of [
        { exp: now - 10 },
        { exp: now - 3600 },
        { exp: 0 },
        { exp: String(now + 60) },
        { exp: null },
        { nbf: now + 10.1 },
        { nbf: now + 3600 },
        { nbf: 1e300 },
        { nbf: [now] },
        { nbf: true },
        { exp: now + 60, nbf: now + 30 },
      ]) {
        const fault = faultOf(() => verifier.verify(prove(claims), HERE))
        expect([fault.code, claims]).toEqual(['invalid_dpop_proof', claims])
        expect(fault.publicText).toMatch('exp' in claims && !('nbf' in claims) ? /Its exp/ : /Its nbf/)
      }
      for (const claims of [
        { exp: now - 9.9 },
        { exp: now + 1e9 },
        { nbf: now + 10 },
        { nbf: 0, exp: now + 1 },
      ])
        expect(verifier.verify(prove(claims), HERE).jkt).toBe(key.jkt)
    },
  )

  it('C6.1.0: outside of that is told a nonce, with which the clock plays no part', () => {
    const { clock, key, nonces, verifier } = setUp()
    const late = { ...FOR_HERE, iat: clock.now() / 1000 - 3600 }
    const fault = faultOf(() => verifier.verify(key.prove(late), HERE))
    expect(fault.code).toBe('use_dpop_nonce')
    expect(fault.facts.headers).toEqual({ 'DPoP-Nonce': nonces.current() })
    expect(verifier.verify(key.prove({ ...late, nonce: nonces.current() }), HERE).jkt).toBe(key.jkt)
  })

  it('C6.1.0: does not suffice where nonces are required', () => {
    const { key, nonces, verifier } = setUp('required')
    expect(faultOf(() => verifier.verify(key.prove(FOR_HERE), HERE)).code).toBe('use_dpop_nonce')
    const proof = verifier.verify(key.prove({ ...FOR_HERE, nonce: nonces.current() }), HERE)
    expect(proof).not.toHaveProperty('newerNonce')
  })

  it('C6.1.0: is all that counts where nonces are off', () => {
    const { clock, key, nonces, verifier } = setUp('off')
    const late = { ...FOR_HERE, iat: clock.now() / 1000 - 3600, nonce: nonces.current() }
    expect(faultOf(() => verifier.verify(key.prove(late), HERE)).code).toBe('invalid_dpop_proof')
    expect(verifier.verify(key.prove({ ...FOR_HERE, nonce: 'of old' }), HERE).jkt).toBe(key.jkt)
  })
})

describe('C6.1.0: a nonce', () => {
  it('C6.1.0: is good for five minutes from the beginning of its minute, and a newer one comes with the answer', () => {
    const { clock, key, nonces, verifier } = setUp()
    const nonce = nonces.current()
    const use = () => verifier.verify(key.prove({ ...FOR_HERE, nonce }), HERE)
    const until = Date.UTC(2026, 0, 15, 12, 5)
    expect(use()).toMatchObject({ expiresAt: until })
    clock.advance(30_000)
    expect(use()).toMatchObject({ expiresAt: until, newerNonce: nonces.current() })
    expect(nonces.current()).not.toBe(nonce)
    clock.advance(239_999)
    expect(use().expiresAt).toBe(until)
    clock.advance(1)
    const fault = faultOf(use)
    expect([fault.code, fault.facts.headers]).toEqual(['use_dpop_nonce', { 'DPoP-Nonce': nonces.current() }])
  })

  it('C6.1.0: of another node is good, also where that one’s clock is a little ahead', () => {
    const { clock, key, verifier } = setUp()
    const ahead = movableClock(clock.now() + 40_000)
    const nonce = openNonces(createDeriver('a secret'), ahead).current()
    expect(verifier.verify(key.prove({ ...FOR_HERE, nonce }), HERE)).not.toHaveProperty('newerNonce')
  })

  it('C6.1.0: that nobody here has made is refused, and so is one of a secret that was replaced', () => {
    const { clock, key, verifier } = setUp()
    const foreign = openNonces(createDeriver('another secret'), clock).current()
    for (const nonce of ['', 'x', foreign, 7, null])
      expect(faultOf(() => verifier.verify(key.prove({ ...FOR_HERE, nonce }), HERE)).code).toBe(
        'use_dpop_nonce',
      )
    let secret = createDeriver('old')
    const nonces = openNonces(
      {
        derive: (text) => secret.derive(text),
        get secretId() {
          return secret.secretId
        },
      },
      clock,
    )
    const old = nonces.current()
    secret = createDeriver('new')
    expect(nonces.goodUntil(old)).toBeUndefined()
    expect(nonces.current()).not.toBe(old)
  })
})

describe('T3.23: a forged proof', () => {
  const { clock, key, verifier } = setUp()
  const refusal = (text: string): string => {
    const { code, publicText } = faultOf(() => verifier.verify(text, HERE))
    expect(code).toBe('invalid_dpop_proof')
    return publicText
  }

  it('C6.1.0: names one of the algorithms of proofs, and no other', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const jwk = rsa.publicKey.export({ format: 'jwk' })
    const claims = { ...FOR_HERE, iat: clock.now() / 1000, jti: 'x' }
    const header = { typ: 'dpop+jwt', jwk }
    expect(refusal(signJwt({ ...header, alg: 'RS256' }, claims, rsa.privateKey, 'RS256'))).toMatch(/alg/)
    for (const alg of ['none', 'HS256', 'ES384', 'es256', '', undefined, 7])
      expect(refusal(key.prove(FOR_HERE, { alg }))).toMatch(/alg/)
    // A key of another kind than the algorithm's.
    expect(refusal(key.prove(FOR_HERE, { alg: 'PS256' }))).toMatch(/no key for its alg/)
    expect(refusal(key.prove(FOR_HERE, { jwk }))).toMatch(/no key for its alg/)
  })

  it('C6.1.0: with the public key as the secret of an HMAC, or a symmetric key, is refused', () => {
    expect(refusal(key.prove(FOR_HERE, { alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } }))).toMatch(/alg/)
    expect(refusal(key.prove(FOR_HERE, { jwk: { kty: 'oct', k: 'AAAA' } }))).toMatch(/private/)
  })

  it('C6.1.0: with a private key in its header is refused, though it is signed with it', () => {
    const jwk = key.privateKey.export({ format: 'jwk' })
    expect(refusal(key.prove(FOR_HERE, { jwk }))).toMatch(/private/)
  })

  it('C6.1.0: with a key that is weak, or dear to verify with, is refused', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const jwk = small.publicKey.export({ format: 'jwk' })
    const claims = { ...FOR_HERE, iat: clock.now() / 1000, jti: 'x' }
    const header = { typ: 'dpop+jwt', alg: 'PS256' }
    expect(refusal(signJwt({ ...header, jwk }, claims, small.privateKey, 'PS256'))).toMatch(/weak/)
    const number = (bytes: number): string => Buffer.alloc(bytes, 0xff).toString('base64url')
    for (const dear of [
      { kty: 'RSA', n: number(513), e: 'AQAB' },
      { kty: 'RSA', n: number(256), e: number(5) },
      { kty: 'RSA', n: number(256), e: 'AQ' },
    ])
      expect(refusal(key.prove(FOR_HERE, { alg: 'PS256', jwk: dear }))).toMatch(/weak|large/)
  })

  it('C6.1.0: with another type, an extension or an address of a key is refused', () => {
    for (const typ of ['jwt', 'DPOP+JWT', undefined])
      expect(refusal(key.prove(FOR_HERE, { typ }))).toMatch(/typ/)
    for (const member of ['crit', 'b64', 'jku', 'x5u', 'x5c', 'enc', 'zip'])
      expect(refusal(key.prove(FOR_HERE, { [member]: 'https://evil.example' }))).toMatch(member)
    for (const jwk of [undefined, null, 'x', [], {}]) refusal(key.prove(FOR_HERE, { jwk }))
  })

  it('C6.1.0: is signed with its own key, in one spelling', () => {
    const other = prover(clock)
    const proof = key.prove(FOR_HERE)
    verifier.verify(proof, HERE)
    const [header = '', payload = '', signature = ''] = proof.split('.')
    const [foreignHeader = ''] = other.prove(FOR_HERE).split('.')
    expect(refusal(`${foreignHeader}.${payload}.${signature}`)).toMatch(/signature/)
    expect(refusal(`${header}.${payload}.`)).toMatch(/signature/)
    expect(refusal(`${header}.${payload}.AAAA`)).toMatch(/signature/)
    for (const text of [`${header}.${payload}.${signature}=`, `${header}.${payload}.+${signature.slice(1)}`])
      refusal(text)
    for (const text of [
      '',
      'x',
      '..',
      `${header}.${payload}`,
      `${proof}.x`,
      `${proof}, ${proof}`,
      `${header}=.${payload}.${signature}`,
      `${header}.${payload}=.${signature}`,
      `${header}.${Buffer.from('[]').toString('base64url')}.${signature}`,
      `${header}.${Buffer.from('{"a":1,"a":1}').toString('base64url')}.${signature}`,
    ])
      refusal(text)
  })

  it('C6.1.0: is at most 4,096 characters long', () => {
    const proofOf = (length: number): string => {
      const missing = length - key.prove({ ...FOR_HERE, x: '' }).length
      return key.prove({ ...FOR_HERE, x: 'x'.repeat(Math.floor((missing * 3) / 4)) })
    }
    expect(verifier.verify(proofOf(4090), HERE).jkt).toBe(key.jkt)
    expect(refusal(proofOf(4110))).toMatch(/4096/)
  })
})

it('C6.1.0: keys that never signed a good proof push out none that did', () => {
  const { clock, key, verifier } = setUp()
  verifier.verify(key.prove(FOR_HERE), HERE)
  const [, payload, signature] = key.prove(FOR_HERE).split('.')
  for (let at = 0; at < 5; at += 1) {
    const [header] = prover(clock).prove(FOR_HERE).split('.')
    expect(faultOf(() => verifier.verify(`${header}.${payload}.${signature}`, HERE)).code).toBe(
      'invalid_dpop_proof',
    )
  }
  expect(verifier.verify(key.prove(FOR_HERE), HERE).jkt).toBe(key.jkt)
})
