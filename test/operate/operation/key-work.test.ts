import { describe, expect, it } from 'vitest'
import { NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import { NO_RECORDER } from '../../../src/base/contracts/records/recorder.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { oneAtATime } from '../../../src/base/kernel/in-turn.ts'
import { rotateKeys } from '../../../src/operate/operation/key-work.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { ROTATION } from '../../support/keys-for-tests.ts'

const OPERATOR = { operator: 'admin', via: '127.0.0.1', channel: 'admin' } as const

describe('C11.5.3 the answer to a rotation', () => {
  it.each([true, false])(
    'tells after 5 s which process has not taken the keys into use (compromised: %s)',
    async (compromised) => {
      const [timers, clock] = [manualAfter(), movableClock()]
      const asked = Promise.withResolvers<undefined>()
      const store = new MemoryStore(clock)
      const rotated = rotateKeys(
        {
          plan: {
            place: new FolderKeys(`${await dataFolder()}/keys`),
            algorithms: ['ES256'],
            rotation: ROTATION,
          },
          clock,
          store: () => Promise.resolve(store),
          elsewhere: false,
          announced: new Set(),
          inTurn: oneAtATime(),
          audit: NO_TRAIL,
          recorder: NO_RECORDER,
          follow: () => {
            asked.resolve(undefined)
            return new Promise(() => undefined)
          },
          after: timers.after,
        },
        { compromised, preview: false },
        OPERATOR,
      )
      await asked.promise
      expect(timers.delays()).toEqual([5000])
      await timers.fire()
      const { trouble, made, families } = await rotated
      expect(trouble).toMatch(
        /^a process of this service has not taken the keys into use \(not within 5 s\): /,
      )
      expect(made).toHaveLength(1)
      expect(families).toBe(0)
    },
  )
})
