import { expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { type Dependencies, openParts } from '../../../src/serve/parts/parts.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { DEMO } from '../../support/spawn-postern.ts'
import { READING, SETTINGS } from '../../support/settings.ts'

it('C10 where endpoints of an extension cannot be made, nothing was opened', async () => {
  const clock = movableClock()
  const { configuration } = SETTINGS.load(DEMO, {})
  const backends = { funds: { kind: 'puppet' } } as unknown as Configuration['backends']
  const opened: string[] = []
  const puppet = { open: (name: string) => opened.push(name), contents: () => Promise.resolve('') }
  const dependencies = {
    ...{ ...READING, clock, store: new MemoryStore(clock) },
    extensions: [{ endpoints: () => Promise.reject(new Error('cannot be loaded')) }],
    addedBackends: { kinds: new Map([['puppet', puppet]]), upgrade: undefined },
  } as unknown as Dependencies
  await expect(openParts({ ...configuration!, backends }, dependencies)).rejects.toThrow('cannot be loaded')
  expect(opened).toEqual([])
})
