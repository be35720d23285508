/** Records of what commands do by themselves, with the service up or down (C12.1.7). */
import type { AuditEntry } from '../../base/contracts/records/audit.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { AdminError, OperationError } from '../../operate/operation/errors.ts'
import { expiredOperator, hasRight, refusedOperator } from '../../operate/operation/operators.ts'
import { type CommandAct, RECORD_COMMAND } from '../../operate/trail/commands.ts'
import { trailFolderOf } from '../../serve/start/settings.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { type CallOptions, checkedReason, operatorName, ownToken } from '../line/call-options.ts'
import { operatorHere, refuseOtherUser, refuseUnkeptTrail } from './operator-here.ts'

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
  act: CommandAct,
  work: () => Promise<number>,
): Promise<number> {
  const { configuration, options, terminal, opensData = false } = order
  const { data } = configuration
  const reason = checkedReason(options)
  const own = ownToken(options, terminal)
  const isKept = trailFolderOf(configuration) !== undefined
  try {
    if (isKept || opensData) refuseOtherUser(data)
    refuseUnkeptTrail(data)
    const { operator, expired } = await operatorHere(configuration, own)
    if (expired) throw expiredOperator(operator)
    if (!hasRight(operator.role, 'administer')) throw refusedOperator(operator, 'administer')
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
    const body = { ...act, outcome, by: operatorName(terminal), ...(reason !== undefined && { reason }) }
    if (isKept)
      await hand(order, body).catch((thrown: unknown) => {
        terminal.stderr.write(`postern: this could not be recorded: ${messageOf(thrown)}\n`)
      })
  }
}

/** Hands a record to the service that writes the trail; where none runs, writes it. Rejects with OperationError if neither can be. */
async function hand({ configuration, options, terminal }: RecordedOrder, body: object): Promise<void> {
  // Only here: what is refused, and what keeps no trail, needs none of it.
  const { findEngineOf } = await import('./find-engine.ts')
  await using engine = await findEngineOf(configuration, { operation: RECORD_COMMAND, options, terminal })
  await engine.send(RECORD_COMMAND, { body: { ...body } })
}
