/** Operations in this process, as the service would carry them out: the same checks, the same handlers, the same records. */
import { ConfigurationError } from '../../base/config/problems.ts'
import type { Readable } from 'node:stream'
import type { JsonValue } from '../../base/http/body/json.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { OperationContext } from '../../operate/operation/context.ts'
import { AdminError, errorBodyOf, OperationError } from '../../operate/operation/errors.ts'
import type { OperationAnswer, OperationInput, SharedOperation } from '../../operate/operation/operation.ts'
import { requireRight, performerOf } from '../../operate/operation/perform.ts'
import { LINES, linesOf } from '../../operate/operation/remote.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { trailFolderOf } from '../../serve/start/settings.ts'
import { OperatedHere, type TrailHere } from '../../serve/start/operate-here.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { writeReport } from '../line/command.ts'
import { type Engine, type LockHere, NothingDone } from './engine.ts'
import { type OperatorHere, operatorHere } from './operator-here.ts'

/** Where requests come from. */
const FROM = { via: 'cli', channel: 'cli' } as const

/** An operation that this process carries out. */
export interface HerePurpose {
  readonly operation: SharedOperation
  readonly configuration: Configuration
  /** Its file. */
  readonly file: string
  readonly terminal: Terminal
  /** The operator's own token, if one is given. */
  readonly own: string | undefined
  /** Undefined if nothing is written. */
  readonly lock: LockHere | undefined
}

/** The trail of a command, under the lock that it has. Where none is kept, the lock is that of the data folder. */
function trailOf({ configuration, lock }: HerePurpose): TrailHere {
  const isKept = trailFolderOf(configuration) !== undefined
  if (lock === undefined) return 'none'
  if ('unrecorded' in lock) return { unopened: lock.unrecorded }
  return isKept ? lock : 'none'
}

/** As AdminError is answered; what has other words here, in those. */
function operationErrorOf(thrown: unknown, here: OperatedHere, { file, terminal }: HerePurpose): unknown {
  if (thrown instanceof ConfigurationError) {
    writeReport(file, thrown.problems, terminal)
    return new NothingDone()
  }
  if (thrown instanceof StoreError) return new OperationError(thrown.message)
  if (thrown instanceof Fault && thrown.code === 'audit_unavailable') {
    const why = thrown.facts.late === true ? thrown.message : here.refusal
    return new OperationError(`nothing was changed, because it could not be recorded: ${why}`, {
      status: 503,
    })
  }
  if (!(thrown instanceof Fault) && !(thrown instanceof AdminError)) return thrown
  const { status, body } = errorBodyOf(thrown)
  return new OperationError(body.error, { status, ...(body.problems && { problems: body.problems }) })
}

interface Refusal {
  readonly error: string
  readonly problems?: readonly string[]
}

/** Opens what the operations work on. Rejects with OperationError, with nothing done. */
export async function engineHere(purpose: HerePurpose): Promise<Engine> {
  const { operation, configuration, terminal, own, lock } = purpose
  const here = new OperatedHere({
    configuration,
    environment: terminal.env,
    trail: trailOf(purpose),
    reads: operation.method === 'GET',
    pause: terminal.pause,
  })
  const dispose = async (): Promise<void> => {
    await here[Symbol.asyncDispose]()
    if (lock !== undefined && 'lock' in lock) lock.lock.release()
    if (isQuestion(purpose.operation)) return
    if (here.unrecorded !== undefined)
      terminal.stderr.write(`postern: this could not be recorded: ${here.unrecorded}\n`)
    tellTroubleOfTrail(here.problems, terminal.stderr)
  }
  try {
    const known = await operatorHere(configuration, own)
    return {
      send: (operation, input) => perform(operation as SharedOperation, input, known),
      [Symbol.asyncDispose]: dispose,
    }
  } catch (thrown) {
    await dispose()
    throw operationErrorOf(thrown, here, purpose)
  }

  async function perform(
    operation: SharedOperation,
    { params = {}, query = {}, body, ifMatch }: OperationInput,
    { operator, expired }: OperatorHere,
  ): Promise<OperationAnswer<unknown>> {
    try {
      requireRight(operator, expired, operation, { audit: here.context.audit, from: FROM })
      const answer = await performerOf<OperationContext>(operation, operation.handle)(here.context, {
        params,
        query: plain(query),
        body: body === undefined ? null : plain(body),
        ifMatch: ifMatch === undefined ? undefined : `"${ifMatch}"`,
        operator,
        from: FROM,
      })
      if (isQuestion(operation)) tellUnrecorded(here, terminal)
      if (answer.status < 400)
        return {
          body: answer.type === LINES ? linesOf(answer.body as Readable) : plain(answer.body),
          tag: answer.tag,
        }
      const { error, problems } = answer.body as Refusal
      throw new OperationError(error, { status: answer.status, ...(problems && { problems }) })
    } catch (thrown) {
      throw operationErrorOf(thrown, here, purpose)
    }
  }
}

const isQuestion = ({ method }: SharedOperation): boolean => method === 'GET'

/** Before the answer is shown: it may be long. */
function tellUnrecorded({ unrecorded, problems }: OperatedHere, { stderr }: Terminal): void {
  const events = problems.length === 0 ? undefined : `the trail cannot be written (${problems.join(', ')})`
  const why = unrecorded ?? events
  if (why !== undefined) stderr.write(`postern: no record was left of this question: ${why}\n`)
}

/** As it would have come over the wire: without members that have no value. */
const plain = (value: unknown): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue

const LOST: readonly string[] = ['audit_lost', 'audit_dropped']

/** Tells what became of the records of a command, when its trail is closed. `events`: errors of its log. */
function tellTroubleOfTrail(events: readonly string[], stderr: Terminal['stderr']): void {
  const others = new Set(events.filter((event) => ![...LOST, 'audit_held'].includes(event)))
  if (events.some((event) => LOST.includes(event)))
    stderr.write('postern: this could not be recorded: the disk of the audit trail did not take the record\n')
  else if (events.includes('audit_held'))
    stderr.write('postern: this is recorded, but late: the disk of the audit trail is slow\n')
  else if (others.size > 0)
    stderr.write(`postern: this is recorded, but the audit trail had trouble (${[...others].join(', ')})\n`)
}
