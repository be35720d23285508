import { describe, expect, it } from 'vitest'
import { Exposition } from '../../../../src/watch/metrics/exposition.ts'
import {
  type GaugeReading,
  GaugeSources,
  mergeReadings,
  reading,
} from '../../../../src/watch/metrics/gauges.ts'
import { FAMILIES } from '../../../../src/watch/metrics/metric-families.ts'
import { SentPlans } from '../../../../src/processes/worker-process.ts'
import { MetricPlan, type Plan } from '../../../../src/watch/metrics/metric-counts.ts'

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

describe('the plans that a worker sends', () => {
  const plans = Array.from({ length: 10 }, (): Plan => new MetricPlan().blocks)

  it('are sent once, however often a process changes between them', () => {
    const [one, other] = plans as [Plan, Plan]
    const sent: number[] = []
    const known = new SentPlans()
    const used = [one, other, one, other].map((plan) => known.use(plan, (number) => sent.push(number)))
    expect([used, sent]).toEqual([
      [0, 1, 0, 1],
      [0, 1],
    ])
  })

  it('are a limited number: the one that was not used for longest gives its number to the next', () => {
    const sent: number[] = []
    const known = new SentPlans()
    const use = (plan: Plan | undefined): number => known.use(plan ?? [], (number) => sent.push(number))
    for (const plan of plans.slice(0, 8)) use(plan)
    use(plans[0])
    expect([use(plans[8]), use(plans[0]), use(plans[1])]).toEqual([1, 0, 2])
    expect(sent).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 1, 2])
  })
})
