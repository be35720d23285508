import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { SECRET, SIGNING_KEY, type Store } from '../../../src/base/contracts/records/store.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { examineKeys } from '../../../src/identity/keys/signing/examine-keys.ts'
import { KeyError } from '../../../src/base/kernel/key-error.ts'
import { keysOf } from '../../../src/identity/keys/signing/key-place.ts'
import { type SealKey, Seals } from '../../../src/identity/keys/signing/seal.ts'
import { SealedKeys, STORE_RECORD } from '../../../src/extensions/postgres/sealed-keys.ts'
import { openKeys, type ServiceKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { parseCompactToken } from '../../../src/identity/keys/verify/token-verifier.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { openStore } from '../../../src/state/stores/open-store.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock, type MovableClock } from '../../support/movable-clock.ts'
import { PATIENT_STORE } from '../../support/patient-store.ts'
import { sealKey } from '../../support/seal-key.ts'
import { ROTATION } from '../../support/keys-for-tests.ts'

const DAY = 86_400_000
const MINUTE = 60_000
const UNREAD = { tokens: ROTATION.announce * 1000, calls: ROTATION.announce * 1000 + 15 * MINUTE }

interface Shared {
  readonly clock: MovableClock
  readonly store: Store
  readonly seals: readonly SealKey[]
}

const shared = (): Shared => {
  const clock = movableClock()
  return { clock, store: new MemoryStore(clock), seals: [sealKey('a')] }
}

const placeIn = ({ store, seals }: Pick<Shared, 'store' | 'seals'>): SealedKeys =>
  new SealedKeys(store, new Seals(seals))

/** One process of one node. */
const node = ({ clock, ...at }: Shared): Promise<ServiceKeys> =>
  openKeys({ place: placeIn(at), algorithms: ['ES256'], rotation: ROTATION, unread: UNREAD }, clock)

const kidOf = async (keys: ServiceKeys): Promise<unknown> =>
  parseCompactToken((await keys.sign({}, { typ: 'JWT', algorithm: 'ES256' })).token).header['kid']

const published = (keys: ServiceKeys): readonly unknown[] => keys.jwks().keys.map(({ kid }) => kid)

/** Everything that the store has of the keys. */
async function contents(store: Store): Promise<string> {
  const kinds = await Promise.all([SIGNING_KEY, SECRET, STORE_RECORD].map((kind) => store.list(kind)))
  return JSON.stringify(kinds)
}

describe('sealed keys', () => {
  it('C6.3.4 ten nodes that start at once agree on one key a generation, and on one secret', async () => {
    const at = shared()
    const data = await dataFolder()
    const stores = await Promise.all(
      Array.from({ length: 10 }, () => openStore(PATIENT_STORE, data, at.clock)),
    )
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()))
    })
    const nodes = await Promise.all(stores.map((store) => node({ ...at, store })))
    expect(new Set(nodes.flatMap(({ kids }) => kids)).size).toBe(1)
    expect(new Set(nodes.map(({ secretId }) => secretId)).size).toBe(1)
    at.clock.advance(29 * DAY)
    await Promise.all(nodes.map((keys) => keys.rotateIfDue()))
    await Promise.all(nodes.map((keys) => keys.refresh()))
    expect(new Set(nodes.flatMap(({ kids }) => kids)).size).toBe(2)
    expect((await stores[0]!.list(SIGNING_KEY)).map(({ key }) => key)).toEqual(['ES256-1', 'ES256-2'])
  })

  it('C6.3.4 a node that starts later, and one that starts again, find the same keys', async () => {
    const at = shared()
    const first = await node(at)
    const second = await node(at)
    expect(second.kids).toEqual(first.kids)
    expect(second.secretId).toBe(first.secretId)
    expect([first.made, second.made]).toEqual([true, false])
  })

  it('T3.15 the store has no key and no secret that can be read', async () => {
    const at = shared()
    const keys = await node(at)
    const kept = await contents(at.store)
    const { text } = await placeIn(at).secret()
    expect(kept).not.toContain(text)
    expect(kept).not.toContain('"d"')
    expect(kept).not.toContain(String(keys.jwks().keys[0]?.['x']))
    expect(Buffer.from(kept, 'base64').toString('latin1')).not.toContain('"kty"')
  })

  it('T3.15 a record that was put at the place of another one is not opened', async () => {
    const at = shared()
    const keys = await node(at)
    at.clock.advance(29 * DAY)
    await keys.rotateIfDue()
    const [one, two] = await at.store.list(SIGNING_KEY)
    await at.store.replace(SIGNING_KEY, two!.key, two!.version, one!.value)
    await expect(node(at)).rejects.toThrow(/signing_key ES256-2 of the store cannot be opened/)
    await at.store.create(SIGNING_KEY, 'ES256-7', { value: one!.value })
    await expect(keysOf(placeIn(at))).rejects.toThrow(KeyError)
  })

  it('T7 without the seal a node does not start, says which one is missing, and changes nothing', async () => {
    const at = shared()
    const keys = await node(at)
    const before = await contents(at.store)
    const wrong = { ...at, seals: [sealKey('b')] }
    await expect(node(wrong)).rejects.toThrow(/sealed with the seal a, which/)
    await expect(node({ ...at, seals: [sealKey('a')] })).rejects.toThrow(/the seal a has another key here/)
    expect(await contents(at.store)).toBe(before)
    await keys.refresh()
    expect(keys.kids).toHaveLength(1)
  })

  it('C6.3.4 a key that a running node cannot open is not replaced: the node goes on with those that it knows', async () => {
    const at = shared()
    const keys = await node(at)
    const [first] = keys.kids
    const newer = await node({ ...at, seals: [sealKey('b'), ...at.seals] })
    at.clock.advance(29 * DAY)
    await keys.refresh()
    await newer.rotateIfDue()
    await expect(keys.rotateIfDue()).rejects.toThrow(/ES256-2 .* the seal b/)
    expect(keys.kids).toEqual([first])
    expect(await kidOf(keys)).toBe(first)
    expect(await at.store.list(SIGNING_KEY)).toHaveLength(2)
  })

  it('C6.3.4 a record that is damaged while a node runs leaves its key in use there', async () => {
    const at = shared()
    const keys = await node(at)
    const { kids } = keys
    const [entry] = await at.store.list(SIGNING_KEY)
    await at.store.replace(SIGNING_KEY, entry!.key, entry!.version, { ...entry!.value, nonce: 'AAAA' })
    await expect(keys.refresh()).rejects.toThrow(/ES256-1 .* cannot be opened/)
    expect(keys.kids).toEqual(kids)
    expect(await kidOf(keys)).toBe(kids[0])
  })

  it('C6.3.4 keys follow each other on all nodes alike; a retired one is removed', async () => {
    const at = shared()
    const [one, other] = [await node(at), await node(at)]
    const [first] = one.kids
    at.clock.advance(29 * DAY)
    await one.rotateIfDue()
    await other.refresh()
    expect(published(other)).toEqual(published(one))
    expect(await kidOf(other)).toBe(first)
    at.clock.advance(DAY)
    await Promise.all([one.refresh(), other.refresh()])
    expect(await kidOf(other)).toBe(await kidOf(one))
    expect(await kidOf(one)).not.toBe(first)
    at.clock.advance(DAY + MINUTE)
    await Promise.all([one.rotateIfDue(), other.rotateIfDue()])
    await other.refresh()
    expect(published(other)).toEqual(published(one))
    expect(published(one)).toHaveLength(1)
  })

  it('T3.10 replaced keys and a replaced secret are in force on other nodes at their next reading', async () => {
    const at = shared()
    const keys = await node(at)
    const [[stolen], before] = [keys.kids, keys.secretId]
    const place = placeIn(at)
    await place.replaceSecret()
    await place.create({ algorithm: 'ES256', generation: 2 }, at.clock)
    await place.remove('ES256-1')
    await keys.refresh()
    expect(await keys.refreshSecret()).toBe(true)
    expect(await keys.refreshSecret()).toBe(false)
    expect(keys.kids).not.toContain(stolen)
    expect(keys.secretId).not.toBe(before)
  })

  it('C6.3.4 an unchanged record is not opened again', async () => {
    const at = shared()
    const seals = new Seals(at.seals)
    const open = vi.spyOn(seals, 'open')
    const place = new SealedKeys(at.store, seals)
    const keys = await openKeys({ place, algorithms: ['ES256'], rotation: ROTATION }, at.clock)
    const before = open.mock.calls.length
    await keys.refresh()
    await keys.refreshSecret()
    expect(open.mock.calls.length).toBe(before)
  })

  it('T7 an empty store in the place of the one that was opened gets no keys; those in memory stay', async () => {
    const at = shared()
    const other = new MemoryStore(at.clock)
    let now: Store = at.store
    const moving = new Proxy(at.store, {
      get: (_target, verb) => {
        const value: unknown = Reflect.get(now, verb)
        return typeof value === 'function' ? value.bind(now) : value
      },
    })
    const keys = await node({ ...at, store: moving })
    const before = keys.kids
    now = other
    await expect(keys.rotateIfDue()).rejects.toThrow(/replaced by another one that has no keys/)
    await expect(keys.refreshSecret()).rejects.toThrow(/replaced by another one/)
    expect(keys.kids).toEqual(before)
    expect(await other.list(SIGNING_KEY)).toEqual([])
    now = at.store
    await keys.rotateIfDue()
    expect(keys.kids).toEqual(before)
  })

  it('T3.10 if all keys were removed from the store itself, the next one is made and signs', async () => {
    const at = shared()
    const keys = await node(at)
    const [first] = keys.kids
    await placeIn(at).remove('ES256-1')
    await keys.rotateIfDue()
    expect(keys.kids).toHaveLength(1)
    expect(await kidOf(keys)).not.toBe(first)
  })

  it('T7 damaged records are told: of a key, of the secret, and the one that names the store', async () => {
    const at = shared()
    await node(at)
    const seals = new Seals(at.seals)
    const id = String((await at.store.find(STORE_RECORD, 'id'))?.value['id'])
    const put = async (kind: string, key: string, text: string): Promise<void> => {
      const entry = await at.store.find(kind, key)
      await at.store.replace(kind, key, entry!.version, { ...seals.seal(text, [id, kind, key]) })
    }
    await put(SIGNING_KEY, 'ES256-1', '{"d":"x"}')
    const told: unknown = await node(at).catch((thrown: unknown) => thrown)
    expect(String(told)).toMatch(/The signing key ES256-1 of the store is no ES256 key/)
    await at.store.remove(SIGNING_KEY, 'ES256-1')
    await put(SECRET, 'successors', 'short')
    await expect(node(at)).rejects.toThrow(/secret of refresh tokens in the store is damaged/)
    const named = await at.store.find(STORE_RECORD, 'id')
    await at.store.replace(STORE_RECORD, 'id', named!.version, { id: 5 })
    await expect(node(at)).rejects.toThrow(/names the store is damaged/)
  })
})

describe('rewrapping', () => {
  it('C6.3.4 seals with the first seal what older ones have sealed; then these are needed no more', async () => {
    const at = shared()
    const keys = await node(at)
    const next = [sealKey('b'), ...at.seals]
    const place = placeIn({ ...at, seals: next })
    expect(await place.rewrap()).toEqual({ sealed: ['ES256-1', 'secret of refresh tokens'], already: [] })
    expect(await place.rewrap()).toEqual({ sealed: [], already: ['ES256-1', 'secret of refresh tokens'] })
    const later = await node({ ...at, seals: next.slice(0, 1) })
    expect(later.kids).toEqual(keys.kids)
    expect(later.secretId).toBe(keys.secretId)
  })

  it('C6.3.4 changes no key for nodes that run: no token is refused meanwhile', async () => {
    const at = shared()
    const next = [sealKey('b'), ...at.seals]
    const keys = await node({ ...at, seals: next })
    const { key } = await keys.sign({}, { typ: 'JWT', algorithm: 'ES256' })
    await placeIn({ ...at, seals: next.toReversed() }).rewrap()
    await keys.refresh()
    expect(await keys.refreshSecret()).toBe(false)
    expect(key.isTrusted()).toBe(true)
  })

  it('T7 changes nothing if a record cannot be opened', async () => {
    const at = shared()
    await node(at)
    const before = await contents(at.store)
    await expect(placeIn({ ...at, seals: [sealKey('b')] }).rewrap()).rejects.toThrow(/the seal a/)
    expect(await contents(at.store)).toBe(before)
  })

  it('C6.3.4 leaves a record alone that was replaced or removed meanwhile', async () => {
    const at = shared()
    await node(at)
    const place = placeIn({ ...at, seals: [sealKey('b'), ...at.seals] })
    vi.spyOn(at.store, 'replace').mockResolvedValueOnce(false)
    expect(await place.rewrap()).toEqual({ sealed: ['secret of refresh tokens'], already: [] })
    expect((await place.rewrap()).sealed).toEqual(['ES256-1'])
  })
})

describe('the examination of sealed keys', () => {
  const examine = async (at: Shared): Promise<readonly string[]> => {
    const plan = { place: placeIn(at), algorithms: ['ES256' as const], rotation: ROTATION }
    const findings = await examineKeys(plan, at.clock.now() / 1000, at.store)
    return findings.map(({ level, text }) => `${level}: ${text}`)
  }

  it('C6.3.4 tells of a store without keys, and of a missing seal; and changes nothing', async () => {
    const at = shared()
    expect(await examine(at)).toEqual(['warning: The store has no keys: the first start makes them.'])
    expect(await contents(at.store)).toBe('[[],[],[]]')
    await node(at)
    expect(await examine({ ...at, seals: [sealKey('b')] })).toEqual([
      expect.stringMatching(/^error: .*the seal a, which/),
    ])
  })

  it('C6.3.4 names what an older seal has sealed', async () => {
    const at = shared()
    await node(at)
    expect(await examine({ ...at, seals: [sealKey('b'), ...at.seals] })).toEqual([
      'fine: ES256-1 signs ES256.',
      expect.stringMatching(
        /^warning: ES256-1, secret of refresh tokens: sealed with the seal a, .*keys rewrap/,
      ),
      'fine: The store remembers no keys yet.',
    ])
  })
})

describe('keys that cannot be read again', () => {
  const outage = (store: Store): (() => void) => {
    const spy = vi
      .spyOn(store, 'list')
      .mockImplementation(() => Promise.reject(new Fault('identity_unavailable')))
    return () => spy.mockRestore()
  }
  const how = { typ: 'JWT', algorithm: 'ES256' } as const

  it('C6.3.4 sign no token once another key may have begun to sign; calls are signed for `maxAge` at least', async () => {
    const at = shared()
    const keys = await node(at)
    const end = outage(at.store)
    at.clock.advance(UNREAD.tokens)
    await expect(keys.refresh()).rejects.toThrow(Fault)
    await expect(keys.sign({}, how)).resolves.toBeDefined()
    at.clock.advance(1)
    await expect(keys.sign({}, how)).rejects.toMatchObject({ code: 'identity_unavailable' })
    await expect(keys.forCalls.sign({}, how)).resolves.toBeDefined()
    at.clock.advance(15 * MINUTE)
    await expect(keys.forCalls.sign({}, how)).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    end()
    await keys.refresh()
    await expect(keys.sign({}, how)).resolves.toBeDefined()
  })

  it('C6.3.4 also count the time that the machine was asleep', async () => {
    const at = shared()
    const keys = await node(at)
    at.clock.step(UNREAD.tokens + 1)
    await expect(keys.sign({}, how)).rejects.toMatchObject({ code: 'identity_unavailable' })
  })

  it('C6.3.4 a reading that cannot open every key does not count as one', async () => {
    const at = shared()
    const keys = await node(at)
    const newer = await node({ ...at, seals: [sealKey('b'), ...at.seals] })
    at.clock.advance(29 * DAY)
    await newer.rotateIfDue()
    await expect(keys.refresh()).rejects.toThrow(/the seal b/)
    await expect(keys.sign({}, how)).rejects.toMatchObject({ code: 'identity_unavailable' })
  })

  it('C4.15 a token with an unknown key is not judged while the store cannot be read, and is refused once it can', async () => {
    const at = shared()
    const keys = await node(at)
    const end = outage(at.store)
    at.clock.advance(1000)
    await expect(keys.find('unknown', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    await expect(keys.findLocally('unknown', 'ES256')).resolves.toBeUndefined()
    expect(await keys.find(keys.kids[0], 'ES256')).toHaveLength(1)
    expect(await keys.find(undefined, 'ES256')).toBeUndefined()
    end()
    at.clock.advance(1000)
    expect(await keys.find('unknown', 'ES256')).toBeUndefined()
  })

  it('C4.15 a new key is found also while another one cannot be opened', async () => {
    const at = shared()
    const keys = await node(at)
    const made = await placeIn(at).create({ algorithm: 'ES256', generation: 2 }, at.clock)
    await placeIn({ ...at, seals: [sealKey('b')] }).create({ algorithm: 'ES256', generation: 3 }, at.clock)
    at.clock.advance(1000)
    expect(await keys.find(made.kid, 'ES256')).toHaveLength(1)
    await expect(keys.find('unknown', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
  })

  it('C4.15 a call with an unknown key waits for a store that hangs for a moment only', async () => {
    const at = shared()
    const keys = await node(at)
    const held = Promise.withResolvers<never>()
    vi.spyOn(at.store, 'list').mockImplementation(() => held.promise)
    at.clock.advance(1000)
    await expect(keys.find('unknown', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    held.reject(new Fault('identity_unavailable'))
  })

  it('T3.5 a flood of unknown keys reads the store once, and what waits in vain is not judged', async () => {
    const at = shared()
    const keys = await node(at)
    at.clock.advance(3000)
    const held = Promise.withResolvers<never>()
    const list = vi.spyOn(at.store, 'list').mockImplementation(() => held.promise)
    const waiting = Array.from({ length: 1000 }, () =>
      keys.find('unknown', 'ES256').catch((fault: unknown) => fault),
    )
    await expect(keys.find('unknown', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    const answers = await Promise.all(waiting)
    expect(answers.every((fault) => fault instanceof Fault)).toBe(true)
    expect(list).toHaveBeenCalledTimes(1)
    held.reject(new Fault('identity_unavailable'))
  })

  it('T3.5 beyond the most that wait, an unknown key is refused at once if the keys were just read', async () => {
    const at = shared()
    const keys = await node(at)
    const held = Promise.withResolvers<readonly []>()
    vi.spyOn(at.store, 'list').mockImplementation(() => held.promise)
    at.clock.advance(2 * placeIn(at).every)
    const waiting = Array.from({ length: 1000 }, () => keys.find('unknown', 'ES256').catch(() => undefined))
    expect(await keys.find('unknown', 'ES256')).toBeUndefined()
    at.clock.advance(1)
    await expect(keys.find('unknown', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    await Promise.all(waiting)
    held.resolve([])
  })
})
