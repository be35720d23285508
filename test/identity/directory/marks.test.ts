import { expect, it, onTestFinished } from 'vitest'
import { DisabledMarks, MarkedPeople } from '../../../src/identity/directory/records/marks.ts'
import { announceChange } from '../../../src/identity/directory/records/stored-directory.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { HASH, makeDirectory } from '../../support/directory.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

/** People of a configuration under the marks of a store that can be out of reach. */
async function marked() {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const feed = await ChangeFeed.open({ store, clock, recorder: keepNotes(), after: manualAfter().after })
  onTestFinished(() => feed.stop())
  const users = { ann: { subject: 's-ann', password: HASH }, ben: { subject: 's-ben', password: HASH } }
  const { people } = await makeDirectory({ users })
  let isDown = false
  const orDown = <T>(work: () => Promise<T>): Promise<T> =>
    isDown ? Promise.reject(new Fault('identity_unavailable')) : work()
  const marks = await DisabledMarks.open({
    feed,
    store: {
      find: (kind, key) => orDown(() => store.find(kind, key)),
      list: (kind) => orDown(() => store.list(kind)),
    },
  })
  const mark = async (name: string, subjects: readonly string[]): Promise<void> => {
    await store.create('disabled_user', name, { value: { name, subjects, since: 0 } })
    await announceChange({ feed, clock }, { user: name, mark: true })
  }
  const disabled = async (name: string): Promise<boolean | undefined> =>
    (await new MarkedPeople(people, marks).findUserByName(name))?.disabled
  return {
    ...{ mark, disabled, store, feed, clock },
    setDown: (down: boolean) => void (isDown = down),
  }
}

it('C11.5.1 people of the configuration log in while the store is out of reach, but for those who are marked', async () => {
  const { mark, disabled, setDown } = await marked()
  await mark('ann', ['s-ann'])
  expect(await disabled('ann')).toBe(true)
  setDown(true)
  expect([await disabled('ann'), await disabled('ben')]).toEqual([true, false])
})

it('C11.5.1 a mark that was announced and cannot be read lets nobody in until it is read', async () => {
  const { mark, disabled, setDown } = await marked()
  setDown(true)
  await mark('ann', ['s-ann'])
  await expect(disabled('ann')).rejects.toMatchObject({ code: 'identity_unavailable' })
  await expect(disabled('ben')).rejects.toMatchObject({ code: 'identity_unavailable' })
  setDown(false)
  expect([await disabled('ann'), await disabled('ben')]).toEqual([true, false])
})

it('C11.5.1 counts for the subject under another name, and ends where the mark is removed', async () => {
  const { mark, disabled, store, feed, clock } = await marked()
  await mark('of old', ['s-ben'])
  expect([await disabled('ann'), await disabled('ben')]).toEqual([false, true])
  await store.remove('disabled_user', 'of old')
  await announceChange({ feed, clock }, { user: 'of old', mark: true })
  expect(await disabled('ben')).toBe(false)
})
