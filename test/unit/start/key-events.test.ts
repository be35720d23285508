import { describe, expect, it } from 'vitest'
import { KeyEvents } from '../../../src/start/key-events.ts'
import { createKey, removeKey } from '../../../src/keys/key-folder.ts'
import { epochSeconds } from '../../../src/kernel/clock.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock } from '../../support/movable-clock.ts'

const HOUR = 3_600_000

async function start() {
  const clock = movableClock()
  const folder = await dataFolder()
  const store = new MemoryStore(clock)
  const told: string[] = []
  const rotation = { automatic: true, every: 86_400, announce: 3600, longestLife: 900 }
  const plan = { folder, algorithms: ['ES256' as const], rotation }
  const audit = {
    note: ({ event, on }: { event: string; on?: { id?: string | undefined } | undefined }) =>
      void told.push(`${event} ${on?.id ?? ''}`),
  }
  const key = (generation: number, ahead = 0) =>
    createKey(folder, { algorithm: 'ES256', generation, signsFrom: epochSeconds(clock) + ahead }, clock)
  return { clock, told, key, folder, events: () => new KeyEvents({ plan, store, audit, clock }) }
}

describe('C12.3 events of keys', () => {
  it('are told once: announced, signing, retired; a restart tells none again', async () => {
    const { clock, told, key, folder, events } = await start()
    const { kid } = await key(1)
    const first = events()
    await first.look()
    await key(2, 3600)
    await first.look()
    await first.look()
    clock.advance(HOUR)
    await first.look()
    expect(told).toEqual(['keys.signing ES256-1', 'keys.announced ES256-2', 'keys.signing ES256-2'])
    const second = events()
    await second.look()
    expect(told).toHaveLength(3)
    await removeKey(folder, 'ES256-1.jwk')
    await second.look()
    await second.look()
    expect(told.slice(3)).toEqual([`keys.retired ${kid}`])
  })

  it('leave out what a command has told', async () => {
    const { told, key, events } = await start()
    await key(1)
    const watch = events()
    await watch.look()
    watch.skipAnnouncement('ES256-2')
    await key(2, 3600)
    await watch.look()
    await watch.look()
    expect(told).toEqual(['keys.signing ES256-1'])
  })
})
