import { describe, expect, it } from 'vitest'
import type { NodeFacts } from '../../../src/base/contracts/records/store.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { NodeBeat } from '../../../src/extensions/postgres/node-beat.ts'
import { manualAfter } from '../../support/manual-after.ts'

const FACTS: NodeFacts = {
  id: 'one',
  host: 'a',
  version: '1',
  config: 'first',
  workers: 1,
  clockOffset: 0,
  feedAge: 0,
}

/** A node among others that have as many configurations as `configs` says. */
function beating(agreed: () => Promise<boolean>) {
  const timers = manualAfter()
  const others = { configs: 1 }
  const nodes: ConstructorParameters<typeof NodeBeat>[0]['nodes'] = {
    beat: () => Promise.resolve({ nodes: 2, workers: 2, configs: others.configs }),
    leave: () => Promise.resolve(),
  }
  const failed = (cause: unknown): never => {
    throw cause
  }
  const beat = new NodeBeat({ nodes, facts: () => FACTS, agreed, failed, after: timers.after })
  const beats = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) await timers.fire()
  }
  return { beat, beats, others }
}

describe('C11.7.8 nodes that have had one configuration for a while', () => {
  it('end once more what it takes away, and then no more', async () => {
    let calls = 0
    const { beats, others } = beating(() => Promise.resolve((calls += 1) > 0))
    await beats(7)
    expect(calls).toBe(0)
    await beats(20)
    expect(calls).toBe(1)
    others.configs = 2
    await beats(1)
    others.configs = 1
    await beats(8)
    expect(calls).toBe(2)
  })

  it('try again at each beat while another node is about it, which may have died', async () => {
    let calls = 0
    const { beats } = beating(() => Promise.resolve((calls += 1) === 3))
    await beats(20)
    expect(calls).toBe(3)
  })

  it('try again after another while if the store failed', async () => {
    let calls = 0
    const { beats } = beating(() => {
      calls += 1
      return calls === 1 ? Promise.reject(new Fault('identity_unavailable')) : Promise.resolve(true)
    })
    await beats(15)
    expect(calls).toBe(1)
    await beats(10)
    expect(calls).toBe(2)
  })

  it('begin anew where a node gets another configuration while one is about it', async () => {
    const first = Promise.withResolvers<boolean>()
    let calls = 0
    const { beat, beats } = beating(() => ((calls += 1) === 1 ? first.promise : Promise.resolve(true)))
    await beats(8)
    beat.changed()
    first.resolve(true)
    await beats(9)
    expect(calls).toBe(2)
  })
})
