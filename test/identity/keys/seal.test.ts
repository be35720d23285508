import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { KeyError } from '../../../src/base/kernel/key-error.ts'
import { sealBytes, sealOf, Seals } from '../../../src/identity/keys/signing/seal.ts'
import { sealKey } from '../../support/seal-key.ts'

const PLACE = ['store-1', 'signing_key', 'ES256-1']
const TEXT = 'the private key of ES256-1'

describe('a seal', () => {
  it('T3.15 gives back what it has sealed, and never seals twice alike', () => {
    const seals = new Seals([sealKey('a')])
    const [one, other] = [seals.seal(TEXT, PLACE), seals.seal(TEXT, PLACE)]
    expect([seals.open(one, PLACE), seals.open(other, PLACE)]).toEqual([TEXT, TEXT])
    expect(one).not.toEqual(other)
    expect(one.text).not.toBe(other.text)
    expect(JSON.stringify(one)).not.toContain(TEXT)
    expect(sealOf(one)).toBe('a')
  })

  it('T3.15 opens nothing at another place: of another store, another kind, another key', () => {
    const seals = new Seals([sealKey('a')])
    const sealed = seals.seal(TEXT, PLACE)
    for (const place of [
      ['store-2', 'signing_key', 'ES256-1'],
      ['store-1', 'secret', 'ES256-1'],
      ['store-1', 'signing_key', 'ES256-2'],
      ['store-1', 'signing_key,ES256-1'],
    ])
      expect(() => seals.open(sealed, place)).toThrow(KeyError)
  })

  it('T3.15 opens nothing that was changed, by whichever bit', () => {
    const seals = new Seals([sealKey('a')])
    const sealed = seals.seal(TEXT, PLACE)
    for (const member of ['nonce', 'text'] as const) {
      const bytes = Buffer.from(sealed[member], 'base64url')
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = Buffer.from(bytes)
        changed[bit >> 3]! ^= 1 << (bit & 7)
        const value = { ...sealed, [member]: changed.toString('base64url') }
        expect(() => seals.open(value, PLACE)).toThrow(/signing_key ES256-1 of the store cannot be opened/)
      }
    }
  })

  it('T3.15 refuses a shorter tag, and what is no sealed value at all', () => {
    const seals = new Seals([sealKey('a')])
    const sealed = seals.seal(TEXT, PLACE)
    const short = Buffer.from(sealed.text, 'base64url').subarray(0, -4).toString('base64url')
    for (const value of [
      { ...sealed, text: short },
      { ...sealed, text: '' },
      { ...sealed, nonce: '' },
      { ...sealed, nonce: 1 },
      {},
    ])
      expect(() => seals.open(value, PLACE)).toThrow(KeyError)
  })

  it('T7 that is missing is named, with what helps', () => {
    const sealed = new Seals([sealKey('old')]).seal(TEXT, PLACE)
    expect(() => new Seals([sealKey('new')]).open(sealed, PLACE)).toThrow(
      /ES256-1 .* sealed with the seal old, which `store\.seal` does not have\. Restore the seal\. .*rotate --compromised/s,
    )
    expect(() => new Seals([sealKey('old')]).open(sealed, PLACE)).toThrow(/the seal old has another key here/)
  })

  it('C6.3.4 the first of several seals, and each of them opens', () => {
    const [a, b] = [sealKey('a'), sealKey('b')]
    const old = new Seals([a]).seal(TEXT, PLACE)
    const seals = new Seals([b, a])
    expect(seals.open(old, PLACE)).toBe(TEXT)
    expect(sealOf(seals.seal(TEXT, PLACE))).toBe('b')
    expect(() => new Seals([a]).open(seals.seal(TEXT, PLACE), PLACE)).toThrow(/the seal b/)
  })

  it('T7 is 32 bytes in base64 or base64url, with or without padding and a line end', () => {
    const bytes = randomBytes(32)
    for (const text of [
      bytes.toString('base64'),
      `${bytes.toString('base64')}\n`,
      bytes.toString('base64url'),
      bytes.toString('base64').replace('=', ''),
    ])
      expect(sealBytes(text)).toEqual(bytes)
    for (const text of ['', 'secret', randomBytes(31).toString('base64'), randomBytes(33).toString('base64')])
      expect(sealBytes(text)).toBeUndefined()
    expect(sealBytes(bytes.toString('hex'))).toBeUndefined()
    expect(() => new Seals([{ id: 'a', key: 'short' }])).toThrow(/The seal a of `store\.seal` is no key/)
    expect(() => new Seals([])).toThrow(/no seal/)
  })
})
