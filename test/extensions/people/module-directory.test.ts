import { describe, expect, it } from 'vitest'
import type { PeopleCall } from '../../../src/base/contracts/people/people-module.ts'
import type { PersonRecord } from '../../../src/identity/directory/records/schema.ts'
import { exchanged, makeModuleDirectory, type WrittenModule } from './made-people.ts'

const DORA = { subject: 'subject-of-dora', username: 'dora' }
const OWNER = { name: 'a test', doubted: false }

/** A module whose calls a test counts. */
async function counting(module: Partial<WrittenModule> = {}) {
  const calls: string[] = []
  const made = await makeModuleDirectory({
    findUserByName: (name: string) => (calls.push(`name ${name}`), name === 'dora' ? DORA : undefined),
    findUserBySubject: (subject: string) => (
      calls.push(`subject ${subject}`),
      subject === DORA.subject ? DORA : null
    ),
    verifyPassword: () => false,
    ...module,
  })
  return { ...made, calls }
}

/** A function of a module that answers when a test says so. */
function pending() {
  const waiting: ((answer: unknown) => void)[] = []
  return {
    waiting,
    answer: () => new Promise<unknown>((resolve) => waiting.push(resolve)),
  }
}

const UNAVAILABLE = { code: 'people_unavailable', facts: { retryAfter: 1 } }

describe('C5.7 what is remembered', () => {
  it('C5.7 by name, one second, and nobody as long as somebody: the time tells neither', async () => {
    const { directory, clock, calls } = await counting()
    for (const name of ['dora', 'nobody', 'dora', 'nobody']) await directory.findByName(name)
    expect(calls).toEqual(['name dora', 'name nobody'])
    clock.advance(999)
    await directory.findByName('dora')
    await directory.findByName('nobody')
    expect(calls).toHaveLength(2)
    clock.advance(2)
    await directory.findByName('dora')
    await directory.findByName('nobody')
    expect(calls.slice(2)).toEqual(['name dora', 'name nobody'])
  })

  it('C5.7 by subject, 30 seconds, from whichever lookup; and nobody not at all', async () => {
    const { directory, clock, calls } = await counting()
    await directory.findByName('dora')
    clock.advance(29_999)
    expect(await directory.findBySubject(DORA.subject)).toMatchObject(DORA)
    expect(calls).toEqual(['name dora'])
    clock.advance(2)
    await directory.findBySubject(DORA.subject)
    await directory.findBySubject('nobody')
    await directory.findBySubject('nobody')
    expect(calls.slice(1)).toEqual(['subject subject-of-dora', 'subject nobody', 'subject nobody'])
  })

  it('C5.7 no failure: the next call asks again', async () => {
    let broken = true
    const { directory } = await counting({
      findUserByName: () => {
        if (broken) throw new Error('not now')
        return DORA
      },
    })
    await expect(directory.findByName('dora')).rejects.toMatchObject(UNAVAILABLE)
    broken = false
    expect(await directory.findByName('dora')).toMatchObject(DORA)
  })

  it('C5.7 a copy: what the module does with its object later changes nothing', async () => {
    const own: Record<string, unknown> = { ...DORA, access: { ACME: 'Reader' } }
    const { directory } = await counting({ findUserBySubject: () => own })
    await directory.findBySubject(DORA.subject)
    Object.assign(own, { disabled: true, access: {} })
    expect(await directory.findBySubject(DORA.subject)).toMatchObject({
      ...{ disabled: false, access: { ACME: 'Reader' } },
    })
  })
})

describe('C5.7 how much runs at once', () => {
  it('C5.7 one lookup a name: those who come meanwhile get its answer', async () => {
    const { waiting, answer } = pending()
    const { directory } = await counting({ findUserByName: answer })
    const asked = Promise.all(Array.from({ length: 50 }, () => directory.findByName('dora')))
    await exchanged()
    expect(waiting).toHaveLength(1)
    waiting[0]?.(DORA)
    expect(await asked).toHaveLength(50)
  })

  it('C5.7 32 lookups by name, and 32 by subject beside them; more are refused', async () => {
    const { waiting, answer } = pending()
    const { directory } = await counting({ findUserByName: answer, findUserBySubject: answer })
    const all = Array.from({ length: 32 }, (_, at) => [
      directory.findByName(`name-${at}`),
      directory.findBySubject(`subject-${at}`),
    ]).flat()
    await expect(directory.findByName('one more')).rejects.toMatchObject(UNAVAILABLE)
    await expect(directory.findBySubject('one-more')).rejects.toMatchObject(UNAVAILABLE)
    await exchanged()
    expect(waiting).toHaveLength(64)
    for (const resolve of waiting) resolve(undefined)
    await Promise.all(all)
    const again = directory.findByName('one more')
    await exchanged()
    waiting.at(-1)?.(undefined)
    expect(await again).toBeUndefined()
  })

  it('C6.3.5 four verifications, 32 that wait, half of them of one owner; more are refused', async () => {
    const { waiting, answer } = pending()
    const { directory } = await counting({ verifyPassword: answer })
    const person = await directory.findByName('dora')
    const verify = (name: string): Promise<boolean> => directory.verify('x', person, { name, doubted: false })
    const running = ['a', 'a', 'a', 'a'].map(verify)
    const first = Array.from({ length: 16 }, () => verify('a'))
    await expect(verify('a')).rejects.toMatchObject({ code: 'people_unavailable' })
    const second = Array.from({ length: 16 }, () => verify('b'))
    await expect(verify('c')).rejects.toMatchObject({ code: 'people_unavailable' })
    // Nobody is refused where somebody would be.
    await expect(directory.verify('x', undefined, OWNER)).rejects.toMatchObject({
      code: 'people_unavailable',
    })
    await exchanged()
    expect(waiting).toHaveLength(4)
    for (let at = 0; at < 36; at++) {
      waiting[at]?.(true)
      await exchanged()
    }
    expect(await Promise.all([...running, ...first, ...second])).toEqual(
      Array.from({ length: 36 }, () => true),
    )
  })
})

describe('C5.7 the deadline of a call', () => {
  it('C5.7 is 2 seconds; then it is aborted, and what comes later is ignored', async () => {
    const { waiting, answer } = pending()
    let signal: AbortSignal | undefined
    const { directory, timers, failed } = await counting({
      findUserByName: (_name: string, call: PeopleCall) => ((signal = call.signal), answer()),
    })
    const late = directory.findByName('dora')
    await exchanged()
    expect(timers.delays()).toEqual([2000])
    void timers.fire()
    await expect(late).rejects.toMatchObject(UNAVAILABLE)
    await exchanged()
    expect(signal?.aborted).toBe(true)
    waiting[0]?.(DORA)
    await exchanged()
    expect(failed).toEqual([])
  })

  it('C5.7 is taken back when the answer has come', async () => {
    const { directory, timers } = await counting()
    await directory.findByName('dora')
    await directory.verify('x', await directory.findByName('dora'), OWNER)
    expect(timers.delays()).toEqual([])
  })
})

describe('C5.7 what the module is asked', () => {
  it.each(['', ' dora', 'dora ', 'a\nb', 'a\0b', 'x'.repeat(129), '\ud800'])(
    'C5.7 nothing of a name that no user can have: %j',
    async (name) => {
      const { directory, calls } = await counting()
      expect(await directory.findByName(name)).toBeUndefined()
      expect(calls).toEqual([])
    },
  )

  it.each(['', 'a b', 'ü', 'x'.repeat(256)])(
    'C5.7 nothing of a subject that no user can have: %j',
    async (subject) => {
      const { directory, calls } = await counting()
      expect(await directory.findBySubject(subject)).toBeUndefined()
      expect(calls).toEqual([])
    },
  )

  it('C5.7 no empty password of a user: in LDAP it would be an anonymous bind, which succeeds', async () => {
    const asked: unknown[] = []
    const { directory } = await counting({ verifyPassword: (user: unknown) => (asked.push(user), true) })
    const person = await directory.findByName('dora')
    expect(await directory.verify('', person, OWNER)).toBe(false)
    expect(asked).toEqual([undefined])
    expect(await directory.verify('x', person, OWNER)).toBe(true)
  })

  it('C5.7 a copy of the user, which its code may change', async () => {
    const { directory } = await counting({
      verifyPassword: (user: { username: string }) => {
        user.username = 'somebody else'
        return true
      },
    })
    const person: PersonRecord | undefined = await directory.findByName('dora')
    expect(await directory.verify('x', person, OWNER)).toBe(true)
    expect(person?.username).toBe('dora')
  })

  it('T3.9 C6.1.5 of nobody too, and waits where its code did no work for nobody', async () => {
    const { directory, waits } = await counting({
      verifyPassword: async (user: unknown) => {
        // Of nobody this code does nothing. On a busy machine that takes some of this time too.
        if (user !== undefined) await new Promise((resolve) => setTimeout(resolve, 1000))
        return false
      },
    })
    await directory.verify('x', await directory.findByName('dora'), OWNER)
    expect(waits).toEqual([])
    expect(await directory.verify('x', undefined, OWNER)).toBe(false)
    expect(waits).toHaveLength(1)
    expect(waits[0]).toBeGreaterThan(0)
  })

  it('C5.7 at its end to close, whatever comes of it', async () => {
    const { directory, failed } = await makeModuleDirectory({
      ...{ findUserByName: () => DORA, findUserBySubject: () => DORA, verifyPassword: () => true },
      ...{ close: () => Promise.reject(new Error('cannot close')) },
    })
    await directory.close()
    expect(failed.map(({ message }) => message)).toEqual(['cannot close'])
  })
})
