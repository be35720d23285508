/** The section `audit`: where the audit trail is kept, and for how long. */
import type { Problems } from '../../../base/config/problems.ts'
import {
  choice,
  duration,
  either,
  flag,
  list,
  optional,
  path,
  section,
  type Static,
} from '../../../base/config/schema.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import { usualTrail } from '../../../operate/settings/trail-settings.ts'
import type { AnchorPlan } from './anchors.ts'

/** Milliseconds between two lines of an anchor. */
const ANCHOR_EVERY = 60_000

const anchorSchema = section({
  log: optional(
    section(
      { every: duration({ default: '1m', description: 'The least time between two of its lines.' }) },
      { description: 'Tell the log: an event `audit_anchor`.' },
    ),
  ),
  file: optional(path({ description: 'Append a line to this file, each minute with news.' })),
})

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
      default: '8s',
      description: 'Longest wait for a record. What it would have recorded is then refused (503).',
    }),
    folder: optional(path({ description: 'Folder of the trail. Default: `audit` in the data folder.' })),
    retention: either(
      duration({ description: 'How long segments are kept, in whole days.' }),
      choice(['none'], { description: 'They are kept for ever.' }),
      {
        default: '400d',
        description: 'How long records are kept: whole days, such as `400d`; `none`: for ever.',
      },
    ),
    anchors: list(anchorSchema, {
      default: [{ log: {} }],
      description: 'Where the end of the signed manifest is told, so that nobody can cut the trail back.',
    }),
  },
  {
    default: {},
    after: 'maintenance',
    description: 'The audit trail: who changed what, in files that show every later change.',
  },
)

type AuditConfig = Static<typeof auditSchema>

/** Where and how the trail is kept. */
export interface AuditPlan {
  readonly folder: string
  readonly durability: AuditConfig['durability']
  /** Within what time a record must be durable, in milliseconds. */
  readonly timeout: number
  /** How long records are kept, in days; undefined: for ever. */
  readonly retention: number | undefined
  readonly anchors: readonly AnchorPlan[]
}

/** The section `audit` of a configuration. */
export const auditOf = (configuration: object): AuditConfig =>
  (configuration as { readonly audit: AuditConfig }).audit

/** The other sections that decide whether a trail is kept, and where. */
interface AuditedSections {
  readonly data: string
  /** Only a sidecar has some. */
  readonly issuers: readonly unknown[]
}

/** The plan of a configuration's trail; undefined if none is kept. A sidecar writes nothing to disk unless its configuration says where. */
export function planAudit(configuration: AuditedSections): AuditPlan | undefined {
  const { data, issuers } = configuration
  const { enabled, folder, durability, timeout, retention, anchors } = auditOf(configuration)
  if (enabled === false || (issuers.length > 0 && folder === undefined)) return undefined
  return {
    folder: folder ?? usualTrail(data),
    durability,
    timeout,
    retention: retention === 'none' ? undefined : Math.ceil(retention / DAY_MS),
    anchors: anchors.flatMap(planAnchor),
  }
}

const planAnchor = ({ log, file }: AuditConfig['anchors'][number]): readonly AnchorPlan[] => [
  ...(log === undefined ? [] : [{ to: 'log', every: log.every } as const]),
  ...(file === undefined ? [] : [{ to: 'file', file, every: ANCHOR_EVERY } as const]),
]

/** Reports what the schema can't express. */
export function compileAudit(configuration: Pick<AuditedSections, 'issuers'>, problems: Problems): void {
  const { enabled, folder, retention, anchors } = auditOf(configuration)
  if (retention !== 'none' && retention % DAY_MS !== 0)
    problems.error(['audit', 'retention'], 'expected whole days, such as "400d", or none')
  for (const [at, { log, file }] of anchors.entries())
    if ((log === undefined) === (file === undefined))
      problems.error(['audit', 'anchors', at], 'expected one of `log` and `file`')
  if (configuration.issuers.length > 0 && enabled === true && folder === undefined)
    problems.error(['audit', 'enabled'], 'needs `audit.folder` in a sidecar, which has no data folder')
}
