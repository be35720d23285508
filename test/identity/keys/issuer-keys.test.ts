import { describe, expect, it, onTestFinished } from 'vitest'
import { IssuerKeys } from '../../../src/identity/keys/issuers/issuer-keys.ts'
import { ISSUER, makeIssuerKey, startForeignIssuer } from '../../support/foreign-issuer.ts'
import { startIssuerServer } from '../../support/issuer-server.ts'
import { movableClock } from '../../support/movable-clock.ts'

const key = await makeIssuerKey('a')

async function opened() {
  const server = await startForeignIssuer([key.jwk])
  const notes: string[] = []
  const keys = new IssuerKeys(
    movableClock(),
    { note: (_level, event) => void notes.push(event) },
    () => undefined,
  )
  onTestFinished(() => keys.close())
  return { keys, server, notes, source: { issuer: ISSUER, jwks: server.url } }
}

describe('C11.2 the keys of all foreign issuers', () => {
  it('C11.2 are read from the first call on, and the same for every configuration with this source', async () => {
    const { keys, server, source } = await opened()
    const found = keys.of(source)
    expect(keys.of({ ...source })).toBe(found)
    expect(keys.of({ ...source, issuer: 'https://other.example' })).not.toBe(found)
    expect(await found.find('a', 'ES256')).toHaveLength(1)
    expect(server.asked).toBeGreaterThan(0)
  })

  it('C11.2 tell their state, those of the configuration in force only', async () => {
    const { keys, source } = await opened()
    expect(keys.conditions()).toEqual([])
    keys.keepOnly([source])
    expect(keys.conditions()).toEqual([{ issuer: ISSUER, state: 'unknown', worksWithout: false }])
    await keys.of(source).find('a', 'ES256')
    expect(keys.conditions()).toEqual([{ issuer: ISSUER, state: 'fresh', worksWithout: false }])
    keys.keepOnly([])
    expect(keys.conditions()).toEqual([])
  })

  it('T3.10 are given up with their issuer, and kept with every reload that names it', async () => {
    const { keys, source } = await opened()
    const find = async () => (await keys.of(source).find('a', 'ES256'))?.[0]?.standing
    const standing = await find()
    keys.keepOnly([source, { ...source, issuer: 'https://other.example' }])
    expect(standing?.isTrusted()).toBe(true)
    expect(await find()).toBe(standing)
    keys.keepOnly([{ ...source, issuer: 'https://other.example' }])
    expect(standing?.isTrusted()).toBe(false)
    expect(await find()).not.toBe(standing)
  })

  it('T3.10 are no longer trusted once they are closed', async () => {
    const { keys, source } = await opened()
    const standing = (await keys.of(source).find('a', 'ES256'))?.[0]?.standing
    keys.close()
    expect(standing?.isTrusted()).toBe(false)
  })

  it('C11.2 are found by the metadata where no key set is configured', async () => {
    const { keys } = await opened()
    const found = await startIssuerServer([key.jwk])
    expect(await keys.of({ issuer: found.url }).find('a', 'ES256')).toHaveLength(1)
  })
})
