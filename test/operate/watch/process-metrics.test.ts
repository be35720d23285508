import { describe, expect, it } from 'vitest'
import {
  AUDIT_EVENTS,
  AUDIT_GROUPS,
  type AuditEvent,
  groupOf,
} from '../../../src/base/kernel/audit-events.ts'
import { Exposition } from '../../../src/operate/watch/metrics/exposition.ts'
import { compileProcessMetrics } from '../../../src/operate/watch/metrics/metrics.ts'
import { readSeries } from '../../support/metrics.ts'

describe('what a process counts as long as it lives', () => {
  it('C11.1 is added up over processes', async () => {
    const exposition = new Exposition({ version: '1', node: 'v26' })
    const count = () => compileProcessMetrics(['find', 'create'], true)
    const [one, two] = [count(), count()]
    one.storeCalled('find', 0.002, false)
    two.storeCalled('find', 0.4, true)
    two.recorded('call.intended')
    two.trailSynced(0.003)
    for (const { take } of [one, two]) exposition.absorb(structuredClone(take()))
    const series = readSeries(await exposition.text())
    const values = [
      'store_verb_duration_seconds_count{verb="find"}',
      'store_verb_duration_seconds_sum{verb="find"}',
      'store_errors_total{verb="find"}',
      'store_errors_total{verb="create"}',
      'audit_records_total{group="calls"}',
      'audit_sync_duration_seconds_count',
    ].map((name) => series.get(`postern_${name}`))
    expect(values).toEqual([2, 0.402, 1, 0, 1, 1])
  })

  it('C11.1 has no series of parts that the service lacks, though their events are told', async () => {
    const exposition = new Exposition({ version: '1', node: 'v26' })
    const bare = compileProcessMetrics([], false)
    bare.storeCalled('find', 1, true)
    bare.recorded('call.intended')
    bare.refusedUnrecorded()
    exposition.absorb(bare.take())
    const names = [...readSeries(await exposition.text()).keys()]
    expect(names.filter((name) => /_(store|audit)_/.test(name))).toEqual([])
    expect(names).toContain('postern_worker_deaths_total')
  })

  it('C12.3 every event of the audit trail has a group, and every group has events', () => {
    const groups = (Object.keys(AUDIT_EVENTS) as AuditEvent[]).map(groupOf)
    expect([...new Set(groups)].toSorted()).toEqual([...AUDIT_GROUPS].toSorted())
    expect(groupOf('business.added')).toBe('directory')
    expect(groupOf('audit.suppressed')).toBe('trail')
  })
})
