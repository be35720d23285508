/** Links by which people set their password, in the store (C6.3.7). */
import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  drawPasswordLink,
  findPasswordLink,
  isLinkCode,
  isLinkFor,
  PASSWORD_LINK,
} from '../../../src/identity/stored/password-links.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const DORA = { username: 'dora', subject: 'S-dora', password: '$argon2id$of-dora' }
const HOUR = 3_600_000

function links() {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const draw = (user = DORA, lifetime = HOUR) => drawPasswordLink(user, lifetime, { store, clock })
  const find = (code: string) => findPasswordLink(code, store)
  return { clock, store, draw, find }
}

describe('C6.3.7 the code of a link', () => {
  it('C6.3.7: a code has 43 characters of base64url, and each is another one', () => {
    const { draw } = links()
    const codes = Array.from({ length: 100 }, () => draw().code)
    for (const code of codes) expect([code, isLinkCode(code)]).toEqual([code, true])
    expect(new Set(codes).size).toBe(codes.length)
  })

  const CODE = 'a'.repeat(43)
  it.each([undefined, '', CODE.slice(1), `${CODE}a`, `${CODE}\n`, ` ${CODE.slice(1)}`, `${CODE.slice(1)}=`])(
    'C6.3.7: %j is no code',
    (text) => expect(isLinkCode(text)).toBe(false),
  )

  it.each(['+', '/', '.', '%', '\0', 'é', '"'])('C6.3.7: no code has the character %j', (character) =>
    expect(isLinkCode(CODE.slice(1) + character)).toBe(false),
  )
})

describe('C6.3.7 what the store has of a link', () => {
  it('C6.3.7: the store has the hash of the code and of the password’s hash, and neither of them', async () => {
    const { clock, draw, store } = links()
    const link = draw()
    await link.open()
    const all = await store.list(PASSWORD_LINK)
    expect(all).toMatchObject([
      {
        key: hash('sha256', link.code, 'base64url'),
        value: {
          ...{ username: 'dora', subject: 'S-dora', at: clock.now() },
          replaces: hash('sha256', DORA.password, 'base64url'),
        },
        expiresAt: link.expiresAt,
      },
    ])
    expect(Object.keys(all[0]!.value).toSorted()).toEqual(['at', 'replaces', 'subject', 'username'])
    for (const secret of [link.code, DORA.password]) expect(JSON.stringify(all)).not.toContain(secret)
  })

  it('C6.3.7: nobody finds a link that was drawn and not stored, nor one by its key', async () => {
    const { draw, find } = links()
    const link = draw()
    expect(await find(link.code)).toBeUndefined()
    await link.open()
    const found = await find(link.code)
    expect(found).toMatchObject({ username: 'dora', subject: 'S-dora' })
    expect(await find(found!.key)).toBeUndefined()
  })

  it('C6.3.7: a link that was taken back is unknown', async () => {
    const { draw, find, store } = links()
    const link = draw()
    await link.open()
    await link.withdraw()
    expect(await find(link.code)).toBeUndefined()
    expect(await store.list(PASSWORD_LINK)).toEqual([])
    // Also one that was never stored.
    await draw().withdraw()
  })

  it('C6.3.7: a link is unknown from the moment at which it ends', async () => {
    const { clock, draw, find } = links()
    const link = draw(DORA, HOUR)
    expect(link.expiresAt).toBe(clock.now() + HOUR)
    await link.open()
    clock.advance(HOUR - 1)
    expect(await find(link.code)).toBeDefined()
    clock.advance(1)
    expect(await find(link.code)).toBeUndefined()
  })
})

describe('C6.3.7 whom a link is for', () => {
  it('C6.3.7: a link is for the user as it was made for: the same subject, the same password', () => {
    const link = links().draw()
    expect(link.isFor(DORA)).toBe(true)
    expect(link.isFor({ ...DORA, password: '$argon2id$another' })).toBe(false)
    expect(link.isFor({ ...DORA, subject: 'S-another' })).toBe(false)
  })

  it('C6.3.7: the link that was found says the same', async () => {
    const { draw, find } = links()
    const link = draw()
    await link.open()
    const found = (await find(link.code))!
    expect(isLinkFor(found, DORA)).toBe(true)
    expect(isLinkFor(found, { ...DORA, password: '' })).toBe(false)
    expect(isLinkFor(found, { ...DORA, password: found.replaces })).toBe(false)
    expect(isLinkFor(found, { ...DORA, subject: '' })).toBe(false)
  })
})

describe('C6.3.7 the newest link of a person counts', () => {
  it('C6.3.7: a newer link ends the one before it, and those of nobody else', async () => {
    const { draw, find, store } = links()
    const [older, newer, of] = [draw(), draw(), draw({ ...DORA, username: 'erin', subject: 'S-erin' })]
    await of.open()
    await older.open()
    await newer.open()
    expect(await find(older.code)).toBeUndefined()
    expect(await find(newer.code)).toBeDefined()
    expect(await find(of.code)).toBeDefined()
    expect(await store.list(PASSWORD_LINK)).toHaveLength(2)
  })

  it('C6.3.7: of two that were stored at the same time one is good: the newest, or one of two of the same moment', async () => {
    const { clock, draw, find, store } = links()
    for (const apart of [0, 1]) {
      const one = draw()
      clock.advance(apart)
      const other = draw()
      // As on two nodes: each removes the older ones before the other one has stored its own.
      const create = store.create.bind(store)
      const held: (() => Promise<unknown>)[] = []
      store.create = (...given) => {
        held.push(() => create(...given))
        return Promise.resolve(true)
      }
      await Promise.all([one.open(), other.open()])
      store.create = create
      for (const make of held) await make()
      expect(await store.list(PASSWORD_LINK)).toHaveLength(2)
      const found = await Promise.all([one, other].map(({ code }) => find(code)))
      expect(found.filter((each) => each !== undefined)).toHaveLength(1)
      if (apart === 1) expect(found[1]).toBeDefined()
    }
  })
})
