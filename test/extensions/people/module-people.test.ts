import { describe, expect, it } from 'vitest'
import {
  closeSubject,
  freeSubject,
  FORMER_SUBJECT,
  formerKey,
  SUBJECT,
} from '../../../src/identity/directory/records/stored-directory.ts'
import { makeModulePeople } from './made-people.ts'

const dora = (more: object = {}) => ({ subject: 'subject-of-dora', username: 'dora', ...more })

const over = (user: () => unknown, right = true) =>
  makeModulePeople({
    findUserByName: user,
    findUserBySubject: user,
    verifyPassword: (found: unknown) => found !== undefined && right,
  })

describe('C5.7 a subject is given once', () => {
  it('C5.7 to the user of the module who logs in with it: the store keeps that', async () => {
    const { people, verify, store } = await over(() => dora())
    expect(await verify('x', await people.findUserByName('dora'))).toBe(true)
    expect((await store.find(SUBJECT, 'subject-of-dora'))?.value).toEqual({ username: 'dora', module: true })
  })

  it('C5.7 and stays that user’s under another name', async () => {
    let username = 'dora'
    const { people, verify, clock } = await over(() => dora({ username }))
    await verify('x', await people.findUserByName('dora'))
    username = 'dora.dale'
    clock.advance(2000)
    expect(await verify('x', await people.findUserByName('dora.dale'))).toBe(true)
  })

  it('C5.7 one of the store is not looked for in the module, whoever the module has', async () => {
    const { people, store, recorder } = await over(() => dora())
    await store.create(SUBJECT, 'subject-of-dora', { value: { username: 'ann' } })
    expect(await people.findUserBySubject('subject-of-dora')).toBeUndefined()
    expect(await people.findUserByName('dora')).toBeUndefined()
    expect(recorder.events).toEqual(['people_subject_taken'])
  })

  it('C5.7 nobody logs in whose subject the store has given away meanwhile', async () => {
    const { people, verify, store } = await over(() => dora())
    const found = await people.findUserByName('dora')
    await store.create(SUBJECT, 'subject-of-dora', { value: { username: 'ann' } })
    expect(await verify('x', found)).toBe(false)
  })
})

describe('C11.5.8 whoever has the subject of a person whose data was erased', () => {
  it('C11.5.8 does not log in, and the store does not keep that it is theirs', async () => {
    const { people, verify, store } = await over(() => dora())
    const found = await people.findUserByName('dora')
    await closeSubject('subject-of-dora', store)
    expect(await verify('x', found)).toBe(false)
    expect(await store.find(SUBJECT, 'subject-of-dora')).toBeUndefined()
  })

  it('C11.5.8 does not log in either where this process still remembers that it was theirs', async () => {
    const { people, verify, store } = await over(() => dora())
    // The second login finds what the first one has stored, and keeps it for a while.
    for (let times = 0; times < 2; times++)
      expect(await verify('x', await people.findUserByName('dora'))).toBe(true)
    await closeSubject('subject-of-dora', store)
    await freeSubject('subject-of-dora', store)
    expect(await verify('x', await people.findUserByName('dora'))).toBe(false)
    expect(await store.find(SUBJECT, 'subject-of-dora')).toBeUndefined()
  })

  it('C11.5.8 does not log in if the erasure begins while their subject is stored', async () => {
    const { people, verify, store } = await over(() => dora())
    const found = await people.findUserByName('dora')
    const create = store.create.bind(store)
    store.create = async (kind, key, entry) => {
      const created = await create(kind, key, entry)
      if (kind === SUBJECT) await closeSubject('subject-of-dora', store)
      return created
    }
    expect(await verify('x', found)).toBe(false)
    expect(await store.find(SUBJECT, 'subject-of-dora')).toBeUndefined()
  })

  it('C11.5.8 one whose user was only removed may log in', async () => {
    const { people, verify, store } = await over(() => dora())
    await freeSubject('subject-of-dora', store)
    expect(await store.find(FORMER_SUBJECT, formerKey('subject-of-dora'))).toBeDefined()
    expect(await verify('x', await people.findUserByName('dora'))).toBe(true)
  })
})

describe('C5.7 roles', () => {
  it('C5.7 that the configuration does not have give nothing, and the log tells it once', async () => {
    const access = { ACME: 'Reader', GLOBEX: 'Emperor', NOWHERE: 'Reader' }
    const { people, recorder } = await over(() => dora({ access }))
    const found = await people.findUserByName('dora')
    expect(found?.access.get('ACME')).toEqual({ role: 'Reader', scopes: ['fund.read'] })
    expect(found?.access.has('GLOBEX')).toBe(false)
    await people.findUserByName('dora')
    expect(recorder.events).toEqual(['people_access_unknown'])
  })
})

describe('C5.7 whoever is gone', () => {
  it('C5.7 loses all, once, however often they are looked for', async () => {
    const { people, ended, clock } = await over(() => undefined)
    for (let n = 0; n < 5; n++) await people.findUserBySubject('subject-of-dora')
    expect(ended).toEqual([{ subject: 'subject-of-dora' }])
    clock.advance(30_001)
    await people.findUserBySubject('subject-of-dora')
    expect(ended).toHaveLength(2)
  })

  it('C5.7 loses nothing because the module fails', async () => {
    const { people, ended } = await over(() => {
      throw new Error('the database is gone')
    })
    await expect(people.findUserBySubject('subject-of-dora')).rejects.toMatchObject({
      code: 'people_unavailable',
    })
    expect(ended).toEqual([])
  })
})

describe('C5.7 C6.1.5 where passwords are verified', () => {
  it('T3.9 a wrong one costs one verification in either place, a right one its own', async () => {
    const calls: unknown[] = []
    const { people, verify, hashed } = await makeModulePeople({
      findUserByName: () => dora(),
      findUserBySubject: () => dora(),
      verifyPassword: (user: unknown, password: string) => (calls.push(user), password === 'right'),
    })
    const theirs = await people.findUserByName('dora')
    const own = { ...theirs!, passwordHash: 'right' }
    expect(await verify('right', theirs)).toBe(true)
    expect([calls.length, hashed.length]).toEqual([1, 0])
    expect(await verify('right', own)).toBe(true)
    expect([calls.length, hashed.length]).toEqual([1, 1])
    for (const user of [theirs, own, undefined]) expect(await verify('wrong', user)).toBe(false)
    expect([calls.length, hashed.length]).toEqual([4, 4])
    expect(calls.slice(2)).toEqual([undefined, undefined])
  })

  it('C6.3.5 no attempt that was verified is left uncounted because no hash has room', async () => {
    let whenVerified = (): void => undefined
    const calls: unknown[] = []
    const { people, verify, fill } = await makeModulePeople({
      findUserByName: () => dora(),
      findUserBySubject: () => dora(),
      verifyPassword: (_user: unknown, password: string) => {
        calls.push(password)
        whenVerified()
        return password === 'right'
      },
    })
    const theirs = await people.findUserByName('dora')
    // Whoever fills the queue at this moment must not guess on for nothing: an attempt that rejects is not counted.
    whenVerified = fill
    expect(await verify('wrong', theirs)).toBe(false)
    await expect(verify('wrong', theirs)).rejects.toMatchObject({ code: 'identity_unavailable' })
    await expect(verify('right', theirs)).rejects.toMatchObject({ code: 'identity_unavailable' })
    expect(calls).toEqual(['wrong'])
  })

  it('C5.7 a user of Postern’s own is answered though the module fails', async () => {
    const { people, verify } = await makeModulePeople({
      findUserByName: () => dora(),
      findUserBySubject: () => dora(),
      verifyPassword: () => 'nonsense',
    })
    const theirs = await people.findUserByName('dora')
    expect(await verify('wrong', { ...theirs!, passwordHash: 'right' })).toBe(false)
    await expect(verify('wrong', theirs)).rejects.toMatchObject({ code: 'people_unavailable' })
  })
})

describe('T3.19 the id of a machine', () => {
  it('T3.19 C5.7 C6.1.5a finds nobody whose subject is the id of a machine', async () => {
    const dora = { subject: 'nightly', username: 'dora' }
    const found = { findUserByName: () => dora, findUserBySubject: () => dora, verifyPassword: () => true }
    const { people, recorder } = await makeModulePeople(found, {
      clients: {
        nightly: {
          ...{ kind: 'machine', grants: ['client_credentials'], scopes: ['fund.read'] },
          ...{ businesses: [], name: 'Nightly' },
          secrets: [`sha256:${'A'.repeat(43)}`],
        },
      },
    })
    expect(await people.findUserByName('dora')).toBeUndefined()
    expect(await people.findUserBySubject('nightly')).toBeUndefined()
    expect(recorder.events).toEqual(['people_subject_taken'])
  })
})
