/** The metrics of the trail. */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { becomes, seriesOf, valueOf } from '../../support/metrics.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { postern } from '../../support/start-postern.ts'
import { issueToken } from '../../support/tokens.ts'
import { withAudit } from '../../support/with-audit.ts'

const NOW = Date.UTC(2026, 0, 15)
const PATIENCE = { timeout: 30_000 }

describe('C11.1 the audit trail', () => {
  const withAnchors =
    (anchors: readonly object[]) =>
    (loaded: Configuration): Configuration =>
      withAudit(loaded, { anchors })

  it('C11.1 its records are counted by group, its syncs are measured, its end is signed and anchored', async () => {
    const clock = movableClock(NOW)
    const service = await postern({ clock, keeps: 'trail' })
    await issueToken(service, { scope: 'openid' })
    expect(await valueOf(service, 'audit_records_total{group="tokens"}')).toBe(1)
    await expect
      .poll(() => valueOf(service, 'audit_sync_duration_seconds_count'), PATIENCE)
      .toBeGreaterThan(0)
    await becomes(service, 'audit_checkpoint_timestamp_seconds', NOW / 1000)
    await becomes(service, 'audit_anchored_timestamp_seconds', NOW / 1000)
    expect(await valueOf(service, 'audit_writable')).toBe(1)
    expect(await valueOf(service, 'audit_open_intents')).toBe(0)
    expect(await valueOf(service, 'audit_abandoned_intents')).toBe(0)
  })

  it('C11.1 an anchor that cannot be written is counted, and the time of anchoring stays', async () => {
    const file = join(await dataFolder(), 'none', 'anchors')
    const service = await postern({ keeps: 'trail', change: withAnchors([{ file }]) })
    await issueToken(service, { scope: 'openid' })
    await becomes(service, 'audit_anchor_failures_total', 1)
    expect(await valueOf(service, 'audit_anchored_timestamp_seconds')).toBe(0)
  })

  it('C11.1 without anchors there is no time of anchoring, and without a trail nothing at all', async () => {
    const [bare, none] = await Promise.all([
      postern({ keeps: 'trail', change: withAnchors([]) }),
      postern({ keeps: 'nothing' }),
    ])
    expect(await valueOf(bare, 'audit_anchored_timestamp_seconds')).toBeUndefined()
    const names = [...(await seriesOf(none)).keys()]
    expect(names.filter((name) => name.startsWith('postern_audit_'))).toEqual([])
  })
})
