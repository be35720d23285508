import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { type KeyHolder, openClientKeySets } from '../../../src/extensions/fapi/client-keys.ts'
import type { OutboundClient } from '../../../src/identity/keys/remote/outbound.ts'
import { movableClock } from '../../support/movable-clock.ts'

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE

interface TestKey {
  readonly jwk: JWK
  readonly privateJwk: JWK
  readonly sign: (header?: object) => Promise<string>
}

async function makeKey(alg: string, members: object = {}): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return {
    jwk: { ...(await exportJWK(publicKey)), ...members },
    privateJwk: { ...(await exportJWK(privateKey)), ...members },
    sign: (header) => new SignJWT({ sub: 'app' }).setProtectedHeader({ alg, ...header }).sign(privateKey),
  }
}

const [one, two] = [await makeKey('ES256', { kid: 'one' }), await makeKey('ES256', { kid: 'two' })]
const REMOTE: KeyHolder = { id: 'app', jwksUri: 'https://app.example/keys' }

const nobodyAsked: OutboundClient = () => Promise.reject(new Error('nobody is asked'))

/** The keys of clients, at a server that publishes what a test says. */
function scene(published: readonly JWK[] | Error = []) {
  const clock = movableClock()
  const notes: unknown[][] = []
  const asked: string[] = []
  const state = { published, status: 200, mark: '' }
  const send: OutboundClient = ({ url }) => {
    asked.push(url)
    if (state.published instanceof Error) return Promise.reject(state.published)
    const body = Buffer.from(state.mark + JSON.stringify({ keys: state.published }))
    return Promise.resolve({ status: state.status, body })
  }
  const recorder = {
    note: (level: string, event: string, facts: Readonly<Record<string, unknown>>) =>
      void notes.push([level, event, facts['client'], facts['kid']]),
  }
  const keys = openClientKeySets({ clock, recorder }).readBy(send)
  const isSigned = async (key: TestKey, client: KeyHolder | undefined = REMOTE, kid = key.jwk.kid) =>
    keys.haveSigned(await key.sign(), client, { alg: 'ES256', kid })
  return { clock, notes, asked, state, keys, isSigned }
}

const UNAVAILABLE = expect.objectContaining({ code: 'identity_unavailable' }) as unknown

describe('C6.1.2 keys in the record of a client', () => {
  const keys = openClientKeySets({
    clock: movableClock(),
    recorder: { note: () => undefined },
  }).readBy(nobodyAsked)

  it.each([
    ['ES256', 'ES256'],
    ['PS256', 'PS256'],
    ['RS256', 'RS256'],
    ['Ed25519', 'Ed25519'],
    ['Ed25519', 'EdDSA'],
  ])('C6.1.2 a key of %s has signed by %s, whichever of its names it has', async (made, alg) => {
    for (const members of [{}, { alg: made }, { alg, use: 'sig' }]) {
      const key = await makeKey(made, members)
      const jws = await key.sign({ alg })
      const other = await makeKey(made)
      expect(
        await keys.haveSigned(jws, { id: 'app', jwks: [other.jwk, key.jwk] }, { alg, kid: undefined }),
      ).toBe(true)
      expect(await keys.haveSigned(jws, { id: 'app', jwks: [other.jwk] }, { alg, kid: undefined })).toBe(
        false,
      )
      expect(await keys.haveSigned(jws, { id: 'app' }, { alg, kid: undefined })).toBe(false)
      expect(await keys.haveSigned(jws, undefined, { alg, kid: undefined })).toBe(false)
    }
  })

  it('C6.1.2 a key that has another id, use or algorithm is not tried', async () => {
    const key = await makeKey('ES256')
    const jws = await key.sign()
    const signed = (members: object, kid?: string): Promise<boolean> =>
      keys.haveSigned(jws, { id: 'app', jwks: [{ ...key.jwk, ...members }] }, { alg: 'ES256', kid })
    expect(await signed({ kid: 'a' }, 'a')).toBe(true)
    expect(await signed({}, 'a')).toBe(true)
    expect(await signed({ kid: 'a' })).toBe(true)
    expect(await signed({ kid: 'b' }, 'a')).toBe(false)
    expect(await signed({ use: 'enc' })).toBe(false)
    expect(await signed({ alg: 'ES384' })).toBe(false)
    expect(await signed({ x: 'AA' })).toBe(false)
  })
})

describe('C6.1.2 keys at an address', () => {
  it('C6.1.2 are read at their first use, and count for five minutes', async () => {
    const { asked, clock, isSigned } = scene([one.jwk])
    expect(await isSigned(one)).toBe(true)
    clock.advance(5 * MINUTE - 1)
    expect(await isSigned(one)).toBe(true)
    expect(asked).toEqual(['https://app.example/keys'])
    clock.advance(1)
    expect(await isSigned(one)).toBe(true)
    expect(asked).toHaveLength(2)
  })

  it('C6.1.2 a key that is gone counts no more after five minutes', async () => {
    const { clock, isSigned, state } = scene([one.jwk])
    expect(await isSigned(one)).toBe(true)
    state.published = [two.jwk]
    expect(await isSigned(one)).toBe(true)
    clock.advance(5 * MINUTE)
    expect(await isSigned(one)).toBe(false)
    expect(await isSigned(two)).toBe(true)
  })

  it('C6.1.2 are read with a byte order mark too', async () => {
    const { isSigned, state } = scene([one.jwk])
    state.mark = '\ufeff'
    expect(await isSigned(one)).toBe(true)
  })

  it('C6.1.2 an unknown kid reads them again, once in ten seconds for a client', async () => {
    const { asked, clock, isSigned, state } = scene([one.jwk])
    expect(await isSigned(one)).toBe(true)
    state.published = [one.jwk, two.jwk]
    expect(await isSigned(two)).toBe(false)
    clock.advance(10 * SECOND - 1)
    expect(await isSigned(two)).toBe(false)
    expect(asked).toHaveLength(1)
    clock.advance(1)
    expect(await isSigned(two)).toBe(true)
    expect(asked).toHaveLength(2)
    for (let i = 0; i < 50; i += 1) expect(await isSigned(two, REMOTE, `kid-${i}`)).toBe(false)
    expect(asked).toHaveLength(2)
    expect(await isSigned(two, { ...REMOTE, id: 'other' })).toBe(true)
    expect(asked).toHaveLength(3)
  })

  it('C6.1.2 a wrong signature of a known kid reads nothing', async () => {
    const { asked, clock, isSigned } = scene([one.jwk])
    clock.advance(10 * SECOND)
    expect(await isSigned(two, REMOTE, 'one')).toBe(false)
    clock.advance(10 * SECOND)
    expect(await isSigned(two, REMOTE, 'one')).toBe(false)
    expect(asked).toHaveLength(1)
  })

  it('C6.1.2 what was read counts for an hour while the address is out of reach, then it is 503', async () => {
    const { asked, clock, isSigned, notes, state } = scene([one.jwk])
    expect(await isSigned(one)).toBe(true)
    state.published = new Error('down')
    clock.advance(HOUR - 1)
    expect(await isSigned(one)).toBe(true)
    clock.advance(1)
    await expect(isSigned(one)).rejects.toEqual(UNAVAILABLE)
    expect(asked).toHaveLength(2)
    clock.advance(10 * SECOND)
    await expect(isSigned(one)).rejects.toEqual(UNAVAILABLE)
    expect(asked).toHaveLength(3)
    state.published = [one.jwk]
    await expect(isSigned(one)).rejects.toEqual(UNAVAILABLE)
    clock.advance(10 * SECOND)
    expect(await isSigned(one)).toBe(true)
    expect(notes).toEqual([
      ['warn', 'client_keys_unreachable', 'app', undefined],
      ['info', 'client_keys_reachable_again', 'app', undefined],
    ])
  })

  it('C6.1.2 keys that were never read are 503, and are tried once in ten seconds', async () => {
    const { asked, isSigned } = scene(new Error('down'))
    await expect(isSigned(one)).rejects.toEqual(UNAVAILABLE)
    await expect(isSigned(one)).rejects.toEqual(UNAVAILABLE)
    expect(asked).toHaveLength(1)
  })

  it.each([301, 404, 500])('C6.1.2 an answer of %i has no keys', async (status) => {
    const { isSigned, state } = scene([one.jwk])
    state.status = status
    await expect(isSigned(one)).rejects.toEqual(UNAVAILABLE)
  })

  it('C6.1.2 what is no key set has none', async () => {
    for (const text of ['', '[]', '{"keys":{}}', '<html>']) {
      const keys = openClientKeySets({ clock: movableClock(), recorder: { note: () => undefined } }).readBy(
        () => Promise.resolve({ status: 200, body: Buffer.from(text) }),
      )
      const signed = keys.haveSigned(await one.sign(), REMOTE, { alg: 'ES256', kid: 'one' })
      await expect(signed, text).rejects.toEqual(UNAVAILABLE)
    }
  })

  it('C6.1.2 calls at once share one reading', async () => {
    const { asked, isSigned } = scene([one.jwk])
    const signed = await Promise.all(Array.from({ length: 20 }, () => isSigned(one)))
    expect(new Set(signed)).toEqual(new Set([true]))
    expect(asked).toHaveLength(1)
  })

  it('C6.1.2 no more than a hundred calls wait for one client, and others find a place beside them (T5.19)', async () => {
    const slow: KeyHolder = { id: 'slow', jwksUri: 'https://slow.example/keys' }
    const answer = Promise.withResolvers<undefined>()
    const body = Buffer.from(JSON.stringify({ keys: [one.jwk] }))
    const send: OutboundClient = async ({ url }) => {
      if (url === slow.jwksUri) await answer.promise
      return { status: 200, body }
    }
    const keys = openClientKeySets({ clock: movableClock(), recorder: { note: () => undefined } }).readBy(
      send,
    )
    const jws = await one.sign()
    const isSigned = (client: KeyHolder) => keys.haveSigned(jws, client, { alg: 'ES256', kid: 'one' })
    const waiting = Array.from({ length: 100 }, () => isSigned(slow))
    await expect(isSigned(slow)).rejects.toEqual(UNAVAILABLE)
    expect(await isSigned(REMOTE)).toBe(true)
    answer.resolve(undefined)
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]))
    expect(await isSigned(slow)).toBe(true)
  })

  it('C6.1.2 a key that everybody has, is too weak or for other uses counts not, and the log tells once', async () => {
    const own = { ...one.jwk, kid: 'enc', use: 'enc' }
    const { clock, isSigned, notes } = scene([one.privateJwk, own])
    expect(await isSigned(one)).toBe(false)
    clock.advance(5 * MINUTE)
    expect(await isSigned(one)).toBe(false)
    expect(notes).toEqual([
      ['warn', 'client_key_private', 'app', 'one'],
      ['info', 'client_key_refused', 'app', 'enc'],
      ['warn', 'client_keys_empty', 'app', undefined],
    ])
  })

  it('C6.1.2 of a large set no more keys are tried than ten', async () => {
    const many = Array.from({ length: 10 }, () => ({ ...two.jwk, kid: 'one' }))
    const { isSigned } = scene([...many, one.jwk])
    expect(await isSigned(one)).toBe(false)
  })

  it('C6.1.2 keys in the record come before the address', async () => {
    const { asked, isSigned } = scene([one.jwk])
    expect(await isSigned(two, { ...REMOTE, jwks: [two.jwk] })).toBe(true)
    expect(asked).toEqual([])
  })
})
