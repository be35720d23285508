import { describe, expect, it } from 'vitest'
import { RefusedWrites } from '../../../src/state/stores/link/store-link.ts'

function refusals() {
  let now = 0
  const writes = new RefusedWrites(() => now)
  return { writes, advance: (ms: number) => void (now += ms) }
}

describe('C11.1 a store that takes no writes', () => {
  it('C11.1 is told by two refusals alike of one kind of write, and not by two of different kinds or reasons', () => {
    const { writes } = refusals()
    writes.refused('create', 'full')
    writes.refused('replace', 'full')
    expect(writes.reason).toBeUndefined()
    writes.refused('create', 'it only reads')
    expect(writes.reason).toBeUndefined()
    writes.refused('create', 'it only reads')
    expect(writes.reason).toBe('it only reads')
  })

  it('C11.1 is told while another kind of write is still taken, until that one is taken too', () => {
    const { writes } = refusals()
    for (const reason of ['full', 'full']) writes.refused('create', reason)
    writes.taken('replace')
    expect(writes.reason).toBe('full')
    writes.taken('create')
    expect(writes.reason).toBeUndefined()
  })

  it('C11.1 is told no longer when nobody has tried to write for half a minute', () => {
    const { writes, advance } = refusals()
    for (const reason of ['full', 'full']) writes.refused('create', reason)
    advance(30_000)
    expect(writes.reason).toBe('full')
    advance(1)
    expect(writes.reason).toBeUndefined()
  })
})
