/** The gauges of the trail, and its part of what /health/ready answers (C12.4.3). */
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'
import type { Condition } from '../../base/kernel/health.ts'
import { FAMILIES } from '../../operate/watch/metrics/families.ts'
import { reading, readingOf } from '../../operate/watch/metrics/gauges.ts'
import type { AbandonedIntents } from './write/abandoned.ts'
import type { SignerState } from './write/signer.ts'
import type { OpenTrail } from './write/trail.ts'

type Readings = readonly GaugeReading[]

export const readTrail = ({ state }: Pick<OpenTrail, 'state'>): Readings => [
  // A record that was not written in time shows a disk that hangs, which fails no attempt.
  readingOf(FAMILIES.auditWritable, state.writable && state.held === 0),
  reading(FAMILIES.auditOpenIntents, state.openIntents),
]

export const readAbandoned = (abandoned: Pick<AbandonedIntents, 'number'>): Readings => [
  reading(FAMILIES.auditAbandonedIntents, abandoned.number),
]

export function readSigner({ signing, signedAt, anchoredAt }: SignerState): Readings {
  return [
    readingOf(FAMILIES.auditWritable, signing),
    ...(signedAt === undefined ? [] : [reading(FAMILIES.auditCheckpoint, Date.parse(signedAt) / 1000)]),
    ...(anchoredAt === undefined ? [] : [reading(FAMILIES.auditAnchored, anchoredAt / 1000)]),
  ]
}

const UNWRITABLE = 'records cannot be written: what must be recorded first is refused with 503'
const LATE =
  'records are late: its disk took longer than `audit.timeout`. What must be recorded first is refused with 503 while that is so'
const UNSIGNED = 'what is recorded cannot be signed'
const DISPLACED =
  'somebody removed, moved or changed a file of it while it was written: run `postern audit verify`; this stands until a restart'

const REPLACED =
  'the store remembers another trail in this folder, which was removed: run `postern audit verify`; this stands until a restart with that trail'

/** The parts of the process that signs. */
interface Signing {
  readonly signer: { readonly state: SignerState }
  readonly remembered: { readonly isReplaced: boolean }
}

/** @param owner of the process that signs */
export function conditionOfTrail({ state }: Pick<OpenTrail, 'state'>, owner?: Signing): Condition {
  const signer = owner?.signer.state
  const { writable, held, displaced } = state
  const reasons = [
    ...(writable ? [] : [UNWRITABLE]),
    // A disk that hangs fails no attempt.
    ...(writable && held > 0 ? [LATE] : []),
    ...(signer?.signing === false ? [UNSIGNED] : []),
    ...(owner?.remembered.isReplaced === true ? [REPLACED] : []),
    ...(displaced > 0 || (signer?.displaced ?? 0) > 0 ? [DISPLACED] : []),
  ]
  return { failing: [], degraded: reasons.map((reason) => ({ name: 'audit trail', reason })) }
}
