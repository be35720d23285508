import { describe, expect, it } from 'vitest'
import { Exposition } from '../../../src/operate/watch/metrics/exposition.ts'
import { GaugeSources, mergeReadings, reading } from '../../../src/operate/watch/metrics/gauges.ts'
import { FAMILIES } from '../../../src/operate/watch/metrics/families.ts'
import type { GaugeReading } from '../../../src/base/contracts/processes/reports.ts'

const valuesOf = (readings: readonly GaugeReading[]) =>
  readings.map(({ labels, value }) => [...labels, value])

describe('gauges', () => {
  it('C11.1 adds up the gauges of all processes by their labels', () => {
    const read = [
      reading(FAMILIES.tunnelsOpen, 2, 'funds'),
      reading(FAMILIES.tunnelsOpen, 0, 'members'),
      reading(FAMILIES.tunnelsOpen, 3, 'funds'),
    ]
    expect(valuesOf(mergeReadings(FAMILIES.tunnelsOpen, read))).toEqual([
      ['funds', 5],
      ['members', 0],
    ])
  })

  it('C11.1 shows the worst where a sum makes no sense', () => {
    const up = [reading(FAMILIES.storeUp, 1), reading(FAMILIES.storeUp, 0)]
    expect(valuesOf(mergeReadings(FAMILIES.storeUp, up))).toEqual([[0]])
    const ages = [reading(FAMILIES.feedAge, 1), reading(FAMILIES.feedAge, 40)]
    expect(valuesOf(mergeReadings(FAMILIES.feedAge, ages))).toEqual([[40]])
    const targets = [
      reading(FAMILIES.upstreamTargets, 2, 'funds', 'healthy'),
      reading(FAMILIES.upstreamTargets, 0, 'funds', 'ejected'),
      reading(FAMILIES.upstreamTargets, 1, 'funds', 'healthy'),
      reading(FAMILIES.upstreamTargets, 1, 'funds', 'ejected'),
    ]
    expect(valuesOf(mergeReadings(FAMILIES.upstreamTargets, targets))).toEqual([
      ['funds', 'healthy', 1],
      ['funds', 'ejected', 1],
    ])
  })

  it('C11.1 prints what the sources read, and no series that no process reads', async () => {
    const sources = new GaugeSources()
    const stop = sources.add(() => [reading(FAMILIES.tunnelsOpen, 4, 'funds')])
    const shown = async (): Promise<readonly string[]> =>
      (await new Exposition({ version: '1', node: 'v0' }).text(sources.read()))
        .split('\n')
        .filter((line) => line.startsWith('postern_tunnels_open'))
    expect(await shown()).toEqual(['postern_tunnels_open{backend="funds"} 4'])
    stop()
    expect(await shown()).toEqual([])
  })
})
