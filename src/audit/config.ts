/** The section `audit`: where the audit trail is kept, and for how long. */
import { join } from 'node:path'
import type { Report } from '../config/report.ts'
import { choice, duration, flag, optional, path, section, type Static } from '../config/schema.ts'

export const auditSchema = section(
  {
    enabled: optional(
      flag({ description: 'Whether a trail is kept. Default: true; in a sidecar only with a `folder`.' }),
    ),
    durability: choice(['disk', 'system'], {
      default: 'disk',
      description: '`disk`: a record survives a power cut. `system`: it survives the end of the process.',
    }),
    timeout: duration({
      default: '2s',
      description: 'Longest wait for a record. What it would have recorded is then refused (503).',
    }),
    folder: optional(path({ description: 'Folder of the trail. Default: `audit` in the data folder.' })),
  },
  { default: {}, description: 'The audit trail: who changed what, in files that show every later change.' },
)

export type AuditConfig = Static<typeof auditSchema>

/** Where and how the trail is kept. */
export interface AuditPlan {
  readonly folder: string
  readonly durability: AuditConfig['durability']
  /** Milliseconds. */
  readonly timeout: number
}

/** The plan of a configuration's trail; undefined if none is kept. A sidecar writes nothing to disk unless told where. */
export function planAudit(config: AuditConfig, data: string, sidecar: boolean): AuditPlan | undefined {
  const { enabled, folder, durability, timeout } = config
  if (enabled === false || (sidecar && folder === undefined)) return undefined
  return { folder: folder ?? join(data, 'audit'), durability, timeout }
}

/** Reports what the schema can't express. */
export function compileAudit({ enabled, folder }: AuditConfig, sidecar: boolean, report: Report): void {
  if (sidecar && enabled === true && folder === undefined)
    report.error(['audit', 'enabled'], 'needs `audit.folder` in a sidecar, which has no data folder')
}
