import { expect, it } from 'vitest'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'

it('C4.15 a store in memory that was closed is out of reach, and may be closed again', async () => {
  const store = new MemoryStore(movableClock())
  await store.close()
  await store.close()
  await expect(store.find('kind', 'key')).rejects.toMatchObject({ code: 'identity_unavailable' })
  await expect(store.create('kind', 'key', { value: {} })).rejects.toMatchObject({
    code: 'identity_unavailable',
  })
})
