import { expect, it, onTestFinished, vi } from 'vitest'
import { SealedKeys } from '../../../src/extensions/postgres/sealed-keys.ts'
import { Seals } from '../../../src/identity/keys/signing/seal.ts'
import { openKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { KeyWatch } from '../../../src/identity/keys/signing/watch-keys.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { ROTATION } from '../../support/keys-for-tests.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { sealKey } from '../../support/seal-key.ts'
import { settled } from '../../support/settled.ts'

it('C11.7.2 the watch over the keys reads those of a store when something was written there, or is due', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const place = new SealedKeys(store, new Seals([sealKey('test')]))
  const keys = await openKeys({ place, algorithms: ['ES256'], rotation: ROTATION }, clock)
  let mark = 'first'
  const ended = vi.spyOn(keys, 'rotateIfDue')
  const confirmed = vi.spyOn(keys, 'confirm')
  const secretReplaced = () => Promise.resolve()
  const recorder = { note: () => undefined }
  const watch = new KeyWatch({ keys, store, recorder, mark: () => ({ mark, age: 0 }), secretReplaced })
  await watch.start()
  onTestFinished(() => watch.stop())
  const tick = async (): Promise<void> => {
    vi.advanceTimersByTime(place.every)
    await settled()
    await Promise.allSettled(ended.mock.results.map(({ value }) => value))
    await settled()
  }
  for (let n = 0; n < 4; n += 1) await tick()
  expect([ended.mock.calls.length, confirmed.mock.calls.length]).toEqual([1, 3])
  mark = 'second'
  for (let n = 0; n < 2; n += 1) await tick()
  expect(ended.mock.calls).toHaveLength(2)
  clock.advance(1000 * (ROTATION.every + 1))
  await tick()
  expect(ended.mock.calls).toHaveLength(3)
})
