/** Operations in this process, as the service would carry them out: the same checks, the same handlers, the same records. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { planAudit } from '../audit/schema.ts'
import { NO_TRAIL } from '../contracts/audit.ts'
import type { JsonValue } from '../http/json.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { newSecret } from '../kernel/ids.ts'
import { hasCode } from '../kernel/thrown.ts'
import { AdminError, errorBodyOf, OperationError } from '../operator/errors.ts'
import type { OperationAnswer, OperationInput, SharedOperation } from '../operator/operation.ts'
import type { OperationContext } from '../operator/context.ts'
import { type AuthenticatedOperator, Operators, unknownOperator } from '../operator/operators.ts'
import { authorize, performerOf } from '../operator/perform.ts'
import type { Terminal } from '../operator/terminal.ts'
import { readAdminToken } from '../operator/token-file.ts'
import { ADMIN } from '../settings/admin.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { OperatedHere, type TrailHere } from '../start/operate-here.ts'
import { ConfigurationError } from '../start/parts.ts'
import { StoreError } from '../stores/store-error.ts'
import { systemOperatorName } from './admin-commands.ts'
import { writeReport } from './command.ts'
import { type Engine, type LockHere, NothingDone } from './engine.ts'

/** An operation that this process carries out. */
export interface HerePurpose {
  readonly operation: SharedOperation
  readonly configuration: Configuration
  /** Its file. */
  readonly file: string
  readonly terminal: Terminal
  /** The operator's own token, if one is given. */
  readonly own: string | undefined
  /** Undefined if nothing is changed. */
  readonly lock: LockHere | undefined
}

/** Everything that files allow, the user of the operating system may do. */
const systemOperator = (): AuthenticatedOperator => ({
  name: systemOperatorName(),
  role: ADMIN,
  expires: Number.POSITIVE_INFINITY,
})

/**
 * Who gives the order. A token that is given counts here too: a wrong one is refused, one that may less does less. Rejects
 * with AdminError 401 or 403.
 */
async function operatorHere({ operation, configuration, own }: HerePurpose): Promise<AuthenticatedOperator> {
  if (own === undefined) return systemOperator()
  const { admin, data } = configuration
  const ownToken = admin.token ?? (await readAdminToken(data).catch(() => newSecret()))
  const operators = new Operators(ownToken, admin.tokens, systemClock)
  const operator = operators.find(`Bearer ${own}`)
  if (operator === undefined) throw unknownOperator(`Bearer ${own}`)
  const from = { via: 'cli', channel: 'cli' } as const
  return authorize(operator, operators.hasExpired(operator), operation, { audit: NO_TRAIL, from })
}

/** What the service makes in its data folder: only its user can use what another user makes there. */
const OF_SERVICE = ['postern.sqlite', 'keys', 'service.lock', 'admin-token', 'audit']

/**
 * Throws OperationError for another user than that of the service. Root too: the service could not use what root makes. To be
 * called before the lock is taken, which makes a file.
 */
export function refuseOtherUser(data: string): void {
  const user = process.geteuid?.()
  if (user === undefined || !existsSync(data)) return
  const made = OF_SERVICE.map((name) => join(data, name)).find((path) => existsSync(path))
  // A volume may belong to root, and what is in it to the service.
  if (made === undefined && user !== 0) return
  const { uid } = statSync(made ?? data)
  if (uid === user) return
  const name = nameOf(uid)
  throw new OperationError(
    `${data} belongs to the user ${name}, and what another one makes there could not be used by the service: run this as that user (sudo -u ${name} postern …)`,
  )
}

function nameOf(uid: number): string {
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((each) => each.split(':')[2] === String(uid))
    return line?.split(':')[0] ?? `#${uid}`
  } catch (thrown) {
    if (!hasCode(thrown, 'ENOENT')) throw thrown
    return `#${uid}`
  }
}

/** The trail of a command, under the lock that it has. Where none is kept, the lock is that of the data folder. */
function trailOf({ configuration, lock }: HerePurpose): TrailHere {
  const { audit, data } = configuration
  const isKept = planAudit(audit, data, isSidecar(configuration)) !== undefined
  if (lock === undefined) return 'none'
  if ('unrecorded' in lock) return { unopened: lock.unrecorded }
  return isKept ? lock : 'none'
}

/** As AdminError is answered; what is told here in other words, in those. */
function operationErrorOf(thrown: unknown, here: OperatedHere, { file, terminal }: HerePurpose): unknown {
  if (thrown instanceof ConfigurationError) {
    writeReport(file, thrown.problems, terminal)
    return new NothingDone()
  }
  if (thrown instanceof StoreError) return new OperationError(thrown.message)
  if (thrown instanceof Fault && thrown.code === 'audit_unavailable')
    return new OperationError(`nothing was changed, because it could not be recorded: ${here.refusal}`, {
      status: 503,
    })
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
  const { configuration, terminal, lock } = purpose
  const here = new OperatedHere({ configuration, environment: terminal.env, trail: trailOf(purpose) })
  const dispose = async (): Promise<void> => {
    await here[Symbol.asyncDispose]()
    if (lock !== undefined && 'lock' in lock) lock.lock.release()
    if (here.unrecorded !== undefined)
      terminal.stderr.write(`postern: this could not be recorded: ${here.unrecorded}\n`)
    if (here.recordedInPart) terminal.stderr.write('postern: the audit trail could not be written in part\n')
  }
  try {
    const operator = await operatorHere(purpose)
    return {
      send: (operation, input) => perform(operation as SharedOperation, input, operator),
      [Symbol.asyncDispose]: dispose,
    }
  } catch (thrown) {
    await dispose()
    throw operationErrorOf(thrown, here, purpose)
  }

  async function perform(
    operation: SharedOperation,
    { params = {}, query = {}, body, ifMatch }: OperationInput,
    operator: AuthenticatedOperator,
  ): Promise<OperationAnswer<unknown>> {
    try {
      const answer = await performerOf<OperationContext>(operation, operation.handle)(here.context, {
        params,
        query: plain(query),
        body: body === undefined ? null : plain(body),
        ifMatch: ifMatch === undefined ? undefined : `"${ifMatch}"`,
        operator,
        from: { via: 'cli', channel: 'cli' },
      })
      if (answer.status < 400) return { body: plain(answer.body), tag: answer.tag }
      const { error, problems } = answer.body as Refusal
      throw new OperationError(error, { status: answer.status, ...(problems && { problems }) })
    } catch (thrown) {
      throw operationErrorOf(thrown, here, purpose)
    }
  }
}

/** As it would have come over the wire: without members that have no value. */
const plain = (value: unknown): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue
