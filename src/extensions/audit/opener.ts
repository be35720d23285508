/** Opens the audit trail of a process. A worker loads nothing of what writes, signs and reads. */
import { Socket } from 'node:net'
import { PROGRESS_DESCRIPTOR, RECORDS_DESCRIPTOR } from '../../base/contracts/processes/recorded-way.ts'
import type { KeptTrail, TrailOpener } from '../../operate/hooks/kept-trail.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { tryLock } from '../../operate/trail/lock.ts'
import { presentAuditKeys } from './format/keys.ts'
import { type AuditPlan, planAudit } from './format/schema.ts'
import type { SentWay } from './queue/sent-records.ts'
import { conditionOfTrail, readTrail } from './trail-health.ts'
import { SentTrail } from './write/sent-trail.ts'

/** Throws TypeError for a configuration that keeps no trail: the core opens none for it. */
function planOf(configuration: Configuration): AuditPlan {
  const plan = planAudit(configuration)
  if (plan === undefined) throw new TypeError('no trail is kept')
  return plan
}

export const OPENER: TrailOpener = {
  async lock(configuration, waits) {
    const { folder } = planOf(configuration)
    const { prepareAuditFolder } = await import('./write/folder.ts')
    await prepareAuditFolder(folder, configuration.dataGroup)
    const lock = tryLock(folder)
    if (lock !== undefined) return lock
    const { holderOf, placeOfHolder, waitForLock } = await import('./trail-lock.ts')
    await waits(holderOf(folder), placeOfHolder(folder))
    return waitForLock(folder)
  },
  async open(configuration, parts) {
    const { openTrailOwner } = await import('./trail-owner.ts')
    return openTrailOwner(planOf(configuration), configuration.dataGroup, parts)
  },
  async openSent(configuration, parts): Promise<KeptTrail> {
    const { folder, timeout } = planOf(configuration)
    const { bodyKey } = await presentAuditKeys(folder)
    const way: SentWay = {
      records: new Socket({ fd: RECORDS_DESCRIPTOR, readable: false, writable: true }),
      openProgress: (onread) =>
        new Socket({ fd: PROGRESS_DESCRIPTOR, readable: true, writable: false, onread }),
    }
    const trail = new SentTrail(way, { ...parts, timeout, bodyKey })
    return {
      trail,
      readings: () => readTrail(trail),
      condition: () => conditionOfTrail(trail),
      close: () => trail.close(),
    }
  },
  rehost: async (...copied) => (await import('./format/beginning.ts')).rehostBeginnings(...copied),
  async *query(configuration, request, onProgress) {
    const { queryTrail } = await import('./read/read-trail.ts')
    yield* queryTrail({ ...request, folders: [planOf(configuration).folder] }, onProgress)
  },
}
