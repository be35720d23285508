import { describe, expect, it } from 'vitest'
import type { Change, Entry, Subscriber } from '../../../src/base/contracts/records/store.ts'
import { LayeredPeople, StoredPeople } from '../../../src/identity/directory/records/people.ts'
import {
  CLIENT,
  closeSubject,
  FORMER_SUBJECT,
  formerState,
  freeSubject,
  isOfPerson,
  Roles,
  StoredDirectory,
  SUBJECT,
  unknownMembers,
  USER,
} from '../../../src/identity/directory/records/stored-directory.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { HASH, makeDirectory } from '../../support/directory.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { READING } from '../../support/settings.ts'

const record = { id: 'acme', kind: 'customer', name: 'Acme', secrets: [], grants: ['password'], scopes: [] }
const alice = { username: 'alice', subject: 's-alice', password: HASH }

/** A stored directory with a store that counts its reads, and a feed that a test controls. */
async function opened() {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  let reads = 0
  let gate: Promise<void> = Promise.resolve()
  let subscriber: Subscriber | undefined
  const find = async (kind: string, key: string): Promise<Entry | undefined> => {
    reads += 1
    const found = await store.find(kind, key)
    await gate
    return found
  }
  const feed = { subscribe: (_topic: string, subscribed: Subscriber) => void (subscriber = subscribed) }
  const directory = new StoredDirectory({ store: { find }, feed, clock })
  await store.create(CLIENT, 'acme', { value: { record, ends: {} } })
  const tell = (value: Change['value']): void =>
    subscriber?.apply({ sequence: 1, mark: '', topic: 'directory', value, expiresAt: undefined }, false)
  return {
    ...{ clock, store, directory, tell },
    reads: () => reads,
    /** Reads do not resolve until it is called. */
    hold: (): (() => void) => {
      let open = (): void => undefined
      gate = new Promise((resolve) => (open = resolve))
      return open
    },
    change: (name: string) => store.replace(CLIENT, 'acme', 1, { record: { ...record, name }, ends: {} }),
  }
}

describe('the directory in the store', () => {
  it('has members of clients that no schema has, and tells them once', async () => {
    const { store } = await opened()
    expect(await unknownMembers(store, READING.clientForm)).toEqual({ members: [], refused: [] })
    for (const id of ['one', 'two'])
      await store.create(CLIENT, id, { value: { record: { ...record, id, more: true }, ends: {} } })
    expect(await unknownMembers(store, READING.clientForm)).toEqual({ members: ['more'], refused: [] })
  })

  it('asks the store once for a record that is asked for often', async () => {
    const { directory, reads } = await opened()
    for (let time = 0; time < 10; time++)
      expect((await directory.findClient('acme'))?.record.name).toBe('Acme')
    expect(reads()).toBe(1)
  })

  it('reads a record anew once the feed tells of it, and no other', async () => {
    const { directory, change, tell, reads } = await opened()
    await directory.findClient('acme')
    await change('Acme Books')
    tell({ client: 'other' })
    tell({ user: 'acme' })
    expect((await directory.findClient('acme'))?.record.name).toBe('Acme')
    tell({ client: 'acme' })
    expect((await directory.findClient('acme'))?.record.name).toBe('Acme Books')
    expect(reads()).toBe(2)
  })

  it('does not keep what it read before a change and got after it', async () => {
    const { directory, change, tell, hold } = await opened()
    const release = hold()
    const early = directory.findClient('acme')
    await change('Acme Books')
    tell({ client: 'acme' })
    release()
    expect((await early)?.record.name).toBe('Acme')
    expect((await directory.findClient('acme'))?.record.name).toBe('Acme Books')
  })

  it('forgets everything at a change that it does not understand', async () => {
    const { directory, change, tell } = await opened()
    await directory.findClient('acme')
    await change('Acme Books')
    tell({ everything: true })
    expect((await directory.findClient('acme'))?.record.name).toBe('Acme Books')
  })

  it('keeps no record longer than 30 s, though the feed is silent', async () => {
    const { directory, change, clock } = await opened()
    await directory.findClient('acme')
    await change('Acme Books')
    clock.advance(29_000)
    expect((await directory.findClient('acme'))?.record.name).toBe('Acme')
    clock.advance(1_001)
    expect((await directory.findClient('acme'))?.record.name).toBe('Acme Books')
  })

  it('finds a client as soon as it is added, though it was asked for before', async () => {
    const { directory, store } = await opened()
    expect(await directory.findClient('new')).toBeUndefined()
    await store.create(CLIENT, 'new', { value: { record: { ...record, id: 'new' }, ends: {} } })
    expect((await directory.findClient('new'))?.record.id).toBe('new')
  })

  it('knows no user by a subject that was kept for a name which another then took', async () => {
    const { directory, store } = await opened()
    await store.create(SUBJECT, 's-given-up', { value: { username: 'alice' } })
    await store.create(USER, 'alice', { value: { record: alice } })
    expect(await directory.findUserBySubject('s-given-up')).toBeUndefined()
  })

  it('fills in what a record of an older version does not say', async () => {
    const { directory, store } = await opened()
    await store.create(USER, 'alice', { value: { record: alice } })
    const people = new StoredPeople(
      directory,
      new Roles(new Map(), directory),
      movableClock(),
      READING.clientForm,
    )
    expect(await people.findUserByName('alice')).toMatchObject({ disabled: false, customers: [], claims: {} })
  })

  it('gives nothing for a role that the configuration no longer has', async () => {
    const { directory, store } = await opened()
    await store.create(USER, 'alice', { value: { record: { ...alice, access: { ACME: 'Gone' } } } })
    const people = new StoredPeople(
      directory,
      new Roles(new Map(), directory),
      movableClock(),
      READING.clientForm,
    )
    expect((await people.findUserByName('alice'))?.access.size).toBe(0)
  })
})

describe('people of the configuration above those of the store', () => {
  async function layered() {
    const { directory, store } = await opened()
    const stored = new StoredPeople(
      directory,
      new Roles(new Map(), directory),
      movableClock(),
      READING.clientForm,
    )
    const configured = await makeDirectory({ users: { alice: { subject: 's-configured', password: HASH } } })
    return { store, people: new LayeredPeople(configured.people, stored) }
  }

  it('hide one of the same name, under its subject too', async () => {
    const { people, store } = await layered()
    await store.create(USER, 'alice', { value: { record: alice } })
    await store.create(SUBJECT, 's-alice', { value: { username: 'alice' } })
    expect((await people.findUserByName('alice'))?.subject).toBe('s-configured')
    expect((await people.findUserBySubject('s-configured'))?.username).toBe('alice')
    expect(await people.findUserBySubject('s-alice')).toBeUndefined()
  })

  it('are found while the store is out of reach; others are not told absent', async () => {
    const { people, store } = await layered()
    store.find = () => Promise.reject(new Fault('identity_unavailable', { detail: 'frozen' }))
    expect((await people.findUserByName('alice'))?.subject).toBe('s-configured')
    await expect(people.findUserByName('bob')).rejects.toThrow(Fault)
  })
})

describe('C11.5.8 the state of a subject', () => {
  const of = async (store: MemoryStore) => [
    await formerState('s-alice', store),
    await isOfPerson('s-alice', store),
  ]

  it('C11.5.8 is free when its user is removed, and closed for good when their data is erased', async () => {
    const { store } = await opened()
    expect(await of(store)).toEqual([undefined, false])
    await freeSubject('s-alice', store)
    expect(await of(store)).toEqual(['free', true])
    await closeSubject('s-alice', store)
    expect(await of(store)).toEqual(['erased', true])
    await freeSubject('s-alice', store)
    await closeSubject('s-alice', store)
    expect(await of(store)).toEqual(['erased', true])
    expect(await formerState('s-bob', store)).toBeUndefined()
  })

  it('C11.5.8 is closed before its user is removed, and the store does not tell whose it was', async () => {
    const { store } = await opened()
    await store.create(SUBJECT, 's-alice', { value: { username: 'alice' } })
    await closeSubject('s-alice', store)
    expect(await of(store)).toEqual(['erased', true])
    await freeSubject('s-alice', store)
    expect(await store.find(SUBJECT, 's-alice')).toBeUndefined()
    const closed = await store.list(FORMER_SUBJECT)
    expect(closed).toMatchObject([{ value: { erased: true } }])
    expect(JSON.stringify(closed)).not.toContain('alice')
  })

  it('C11.5.8 is closed though another process frees it at the same time', async () => {
    const { store } = await opened()
    const create = store.create.bind(store)
    store.create = async (...what) => {
      store.create = create
      await freeSubject('s-alice', store)
      return create(...what)
    }
    await closeSubject('s-alice', store)
    expect(await formerState('s-alice', store)).toBe('erased')
  })
})
