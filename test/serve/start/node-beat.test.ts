import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Nodes } from '../../../src/base/contracts/records/store.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { NodeBeat } from '../../../src/serve/start/node.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'

const demo = SETTINGS.read(
  fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url)),
  {},
).configuration!

/** A node among others that have as many configurations as `configs` says. */
function beating(agreed: () => Promise<boolean>, configuration = demo) {
  const timers = manualAfter()
  const clock = movableClock()
  const others = { configs: 1 }
  const nodes: Nodes = {
    knownSchema: 1,
    beat: () => Promise.resolve({ nodes: 2, workers: 2, configs: others.configs }),
    live: () => Promise.reject(new Error('not asked')),
    atStart: () => Promise.reject(new Error('not asked')),
    list: () => Promise.resolve([]),
    leave: () => Promise.resolve(),
  }
  const state = { clock, feed: { age: 0 }, doubts: { clock: undefined, contents: undefined } }
  const parts = { nodes, state, machine: clock, recorder: keepNotes(), agreed, after: timers.after }
  const beat = new NodeBeat(configuration, { ...parts, address: '127.0.0.1:8080' })
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
    beat.adopt({ ...demo, vendor: 'other' })
    first.resolve(true)
    await beats(9)
    expect(calls).toBe(2)
  })
})

describe('C11.7.8 the digest of a configuration', () => {
  const { server, admin, audit } = demo
  const digestOf = (more: Partial<Configuration>): string =>
    beating(() => Promise.resolve(true), { ...demo, ...more }).beat.digest
  const own = (name: string): Partial<Configuration> => ({
    data: `/data/${name}`,
    server: { ...server, listen: `${name}:8080` },
    admin: { ...admin, listen: `${name}:9090`, probes: `${name}:9091` },
    audit: { ...audit, folder: `/audit/${name}`, anchors: [{ file: `/anchors/${name}` }] },
  })

  it('C11.7.8 is one on nodes with addresses, folders and files of their own', () => {
    expect(digestOf(own('one'))).toBe(digestOf(own('other')))
  })

  it.each<[string, Partial<Configuration>]>([
    ['the vendor', { vendor: 'other' }],
    ['how long the trail is kept', { audit: { ...audit, retention: 'none' } }],
    ['where the trail is anchored', { audit: { ...audit, anchors: [] } }],
  ])('C11.7.8 is another one where they differ in %s', (_what, more) => {
    expect(digestOf(more)).not.toBe(digestOf({}))
  })
})
