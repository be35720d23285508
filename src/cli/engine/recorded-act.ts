/** Records of what commands do by themselves, with the service up or down (C12.1.7). */
import { type AuditedChange, byOperator, type Operator } from '../../base/contracts/records/audited-change.ts'
import { planAudit } from '../../state/audit/format/schema.ts'
import type { AuditEntry } from '../../base/contracts/records/audit.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { AdminError, OperationError } from '../../operate/operation/errors.ts'
import { expiredOperator, hasRight, refusedOperator } from '../../operate/operation/operators.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { type CallOptions, checkedReason, operatorName, ownToken } from '../line/call-options.ts'
import { operatorHere, refuseOtherUser } from './operator-here.ts'

export interface RecordedOrder {
  readonly configuration: Configuration
  readonly options: CallOptions
  readonly terminal: Terminal
  /** Whether the work opens files of the data folder. Otherwise only a record is written there. */
  readonly opensData?: boolean
}

const OUTCOMES: Readonly<Record<number, AuditEntry['outcome']>> = {
  [EXIT.done]: 'success',
  [EXIT.refused]: 'refused',
}

/**
 * Does the work, which gives an exit code, and then records it: it stops nothing, so a record that cannot be kept is an error on
 * stderr. With another user's data folder, and with a token that is wrong or may not do this, nothing is done: exit code 1.
 *
 * @throws UsageError if the reason is too long, or the token cannot be read
 */
export async function recorded(
  order: RecordedOrder,
  act: AuditedChange,
  work: () => Promise<number>,
): Promise<number> {
  const { configuration, options, terminal, opensData = false } = order
  const { data } = configuration
  const reason = checkedReason(options)
  const own = ownToken(options, terminal)
  const isKept = planAudit(configuration) !== undefined
  let operator: Operator
  try {
    if (isKept || opensData) refuseOtherUser(data)
    const { operator: known, expired } = await operatorHere(configuration, own)
    if (expired) throw expiredOperator(known)
    if (!hasRight(known.role, 'administer')) throw refusedOperator(known, 'administer')
    operator = { operator: known.name, by: operatorName(terminal), reason, via: 'cli', channel: 'cli' }
  } catch (thrown) {
    if (!(thrown instanceof AdminError || thrown instanceof OperationError)) throw thrown
    terminal.stderr.write(`postern: nothing was changed: ${thrown.message}\n`)
    return EXIT.failed
  }
  let code: number = EXIT.failed
  try {
    code = await work()
    return code
  } finally {
    const outcome = OUTCOMES[code] ?? 'failed'
    const entry: AuditEntry = { ...act, ...byOperator(operator), outcome }
    if (isKept)
      await keep(entry, configuration, terminal).catch((thrown: unknown) => {
        terminal.stderr.write(`postern: this could not be recorded: ${messageOf(thrown)}\n`)
      })
  }
}

/**
 * Keeps a record in a part of the trail of its own: under the lock, or next to the service that holds it, which takes that part
 * up and signs it. Rejects if the trail cannot be opened.
 */
async function keep(entry: AuditEntry, configuration: Configuration, { stderr }: Terminal): Promise<void> {
  const errors: string[] = []
  const note = (level: string, event: string): void => {
    if (level === 'error') errors.push(event)
  }
  // Only here: what is refused, and what keeps no trail, needs none of it.
  const { openTrailOwner } = await import('../../serve/parts/trail-owner.ts')
  const owner = await openTrailOwner(configuration, {
    clock: systemClock,
    recorder: { note },
    here: true,
  })
  await owner?.trail?.keep(entry)
  await owner?.close()
  tellTroubleOfTrail(errors, stderr)
}

const LOST: readonly string[] = ['audit_lost', 'audit_dropped']

/** Tells what became of the records of a command, when its trail is closed. `events`: errors of its log. */
export function tellTroubleOfTrail(events: readonly string[], stderr: Terminal['stderr']): void {
  const others = new Set(events.filter((event) => ![...LOST, 'audit_held'].includes(event)))
  if (events.some((event) => LOST.includes(event)))
    stderr.write('postern: this could not be recorded: the disk of the audit trail did not take the record\n')
  else if (events.includes('audit_held'))
    stderr.write('postern: this is recorded, but late: the disk of the audit trail is slow\n')
  else if (others.size > 0)
    stderr.write(`postern: this is recorded, but the audit trail had trouble (${[...others].join(', ')})\n`)
}
