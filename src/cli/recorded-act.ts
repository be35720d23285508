/** Records of what commands change, with the service up or down (C12.1.7). */
import { setTimeout as wait } from 'node:timers/promises'
import type { AuditedChange, Operator } from '../audit/audited-change.ts'
import { announcedService, tryLock } from '../audit/lock.ts'
import { planAudit } from '../audit/schema.ts'
import { AUDIT_EVENTS } from '../kernel/audit-events.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { newSecret } from '../kernel/ids.ts'
import { messageOf } from '../kernel/thrown.ts'
import { findService, isReachable } from '../operator/announcement.ts'
import { OperationError } from '../operator/errors.ts'
import { expiredOperator, Operators, refusedOperator, unknownOperator } from '../operator/operators.ts'
import { sendTo } from '../operator/remote.ts'
import { type ActOutcome, ReportedActs } from '../operator/reported-acts.ts'
import { hasRight } from '../operator/rights.ts'
import type { Terminal } from '../operator/terminal.ts'
import { readAdminToken } from '../operator/token-file.ts'
import { EXIT } from '../operator/verb.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { operatorName, requestAdmin, systemOperatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason, checkOrder, ownToken } from './call-options.ts'

export interface RecordedOrder {
  readonly configuration: Configuration
  readonly options: CallOptions
  readonly terminal: Terminal
}

/** Where the records of a command go. All methods but `close` reject if a record cannot be kept. */
interface ActBook {
  begin(act: AuditedChange): Promise<number>
  end(intent: number, outcome: ActOutcome, act: AuditedChange): Promise<void>
  done(outcome: ActOutcome, act: AuditedChange): Promise<void>
  close(): Promise<void>
}

/** Milliseconds to wait for another command, or for a service that starts or ends. */
const PATIENCE = 10_000
const PAUSE = 100

const NO_BOOK: ActBook = {
  begin: () => Promise.resolve(0),
  end: () => Promise.resolve(),
  done: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

/** A writer of its own. Undefined if another process holds the lock. */
async function openOwnBook(
  folder: string,
  { configuration, terminal }: RecordedOrder,
  operator: Operator,
): Promise<ActBook | undefined> {
  const lock = tryLock(folder)
  if (lock === undefined) return undefined
  lock.release()
  let failed = false
  const note = (level: string): void => {
    if (level === 'error') failed = true
  }
  // Only here: what reads, and what a running service records, needs no trailOwner of the trail.
  const { openTrailOwner } = await import('../start/trail-owner.ts')
  const trailOwner = await openTrailOwner(configuration, { clock: systemClock, recorder: { note } })
  if (trailOwner?.trail === undefined || trailOwner.lock === undefined) {
    await trailOwner?.close()
    return undefined
  }
  const acts = new ReportedActs(trailOwner.trail)
  return {
    begin: (act) => acts.begin(act, operator),
    end: async (intent, outcome, act) => {
      await acts.end(intent, outcome, act, operator)
    },
    done: (outcome, act) => acts.keep(outcome, act, operator),
    close: async () => {
      await trailOwner.close()
      if (failed) terminal.stderr.write('postern: the audit trail could not be written in part\n')
    },
  }
}

/** Through the admin API of the service that holds the lock. */
function serviceBook(url: string, order: RecordedOrder, { by, reason }: Operator): ActBook {
  const { configuration, options, terminal } = order
  const post = async (report: object): Promise<{ readonly intent?: number }> => {
    const call = { method: 'POST', path: '/audit/records', body: { ...report, by, reason } } as const
    const response = await requestAdmin(configuration, call, ownToken(options, terminal), url)
    return (await response.json()) as { intent?: number }
  }
  return {
    begin: async (act) => (await post({ stage: 'begin', ...act })).intent ?? 0,
    end: async (intent, outcome, act) => {
      await post({ stage: 'end', intent, outcome, ...act })
    },
    done: async (outcome, act) => {
      await post({ stage: 'done', outcome, ...act })
    },
    close: () => Promise.resolve(),
  }
}

/**
 * Rejects with OperationError if neither a service nor the folder can be used.
 *
 * @param operator who gives the order, as a record of this process names them
 */
async function openBook(order: RecordedOrder, operator: Operator): Promise<ActBook> {
  const { configuration } = order
  const plan = planAudit(configuration.audit, configuration.data, isSidecar(configuration))
  if (plan === undefined) return NO_BOOK
  const deadline = performance.now() + PATIENCE
  for (;;) {
    const own = await openOwnBook(plan.folder, order, operator)
    if (own !== undefined) return own
    const url = announcedService(plan.folder)?.adminUrl
    if (url !== undefined) return serviceBook(url, order, operator)
    if (performance.now() > deadline)
      throw new OperationError(`${plan.folder} is in use by another process that does not end`)
    await wait(PAUSE)
  }
}

const OUTCOMES: Readonly<Record<number, ActOutcome>> = { [EXIT.done]: 'success', [EXIT.refused]: 'refused' }

const outcomeOf = (code: number): ActOutcome => OUTCOMES[code] ?? 'failed'

function reasonOf(thrown: unknown): string {
  if (thrown instanceof Fault) return 'the audit trail cannot be written'
  return messageOf(thrown)
}

/** Whether an act must not be done unless its record is durable. */
const gives = ({ event }: AuditedChange): boolean => ['gives', 'either'].includes(AUDIT_EVENTS[event].weight)

/**
 * Does the work, which gives an exit code, and records it. What gives something is recorded before: if that fails, the
 * work is not done, and the exit code is 1. What takes something away is done in any case, and then recorded; a record
 * that fails is told on stderr.
 *
 * @param giving of an act that may do either: whether it gives something
 * @throws UsageError if the reason is too long, or the token cannot be read
 */
export async function recorded(
  order: RecordedOrder,
  act: AuditedChange,
  work: () => Promise<number>,
  giving = gives(act),
): Promise<number> {
  checkOrder(order.options, order.terminal)
  const author = await authorOf(order)
  if ('refusal' in author) {
    order.terminal.stderr.write(`postern: nothing was changed: ${author.refusal}\n`)
    return EXIT.failed
  }
  const { options, terminal } = order
  const operator = { ...author, by: operatorName(terminal), reason: checkedReason(options), via: 'cli' }
  const open = (): Promise<ActBook> => openBook(order, operator)
  return giving ? recordedBefore(open, act, work, terminal) : recordedAfter(open, act, work, terminal)
}

async function recordedBefore(
  open: () => Promise<ActBook>,
  act: AuditedChange,
  work: () => Promise<number>,
  { stderr }: Terminal,
): Promise<number> {
  let book: ActBook | undefined
  let intent: number
  try {
    book = await open()
    intent = await book.begin(act)
  } catch (thrown) {
    await book?.close()
    stderr.write(`postern: nothing was changed, because it could not be recorded: ${reasonOf(thrown)}\n`)
    return EXIT.failed
  }
  let code: number = EXIT.failed
  try {
    code = await work()
    return code
  } finally {
    await book.end(intent, outcomeOf(code), act).catch((thrown: unknown) => {
      stderr.write(`postern: how it ended could not be recorded: ${reasonOf(thrown)}\n`)
    })
    await book.close()
  }
}

async function recordedAfter(
  open: () => Promise<ActBook>,
  act: AuditedChange,
  work: () => Promise<number>,
  { stderr }: Terminal,
): Promise<number> {
  let code: number = EXIT.failed
  try {
    code = await work()
    return code
  } finally {
    try {
      const book = await open()
      try {
        await book.done(outcomeOf(code), act)
      } finally {
        await book.close()
      }
    } catch (thrown) {
      stderr.write(`postern: this could not be recorded: ${reasonOf(thrown)}\n`)
    }
  }
}

/** Any operation that needs the right to change all. */
const ADMINISTERED = { method: 'GET', path: '/sessions' } as const

/** Who gives the order: as the service names the token that it is shown; here by its own token, or the user of the system. */
type Author = { readonly operator: string | undefined } | { readonly refusal: string }

/**
 * Refused if the operator's own token does not allow an act. What takes away is recorded after it was done: so the token is
 * looked at before. The service decides, where one runs.
 */
async function authorOf({ configuration, options, terminal }: RecordedOrder): Promise<Author> {
  const own = ownToken(options, terminal)
  if (own === undefined) return { operator: systemOperatorName() }
  const { admin, audit, data } = configuration
  const trail = planAudit(audit, data, isSidecar(configuration))?.folder
  const service = findService({ data, trail })
  if (service !== undefined && (await isReachable(service))) {
    const access = { address: service.adminUrl, token: own }
    return sendTo(access, ADMINISTERED, { query: { limit: '1' } }).then(
      () => ({ operator: undefined }),
      (thrown: unknown) => ({ refusal: messageOf(thrown) }),
    )
  }
  const ownOfService = admin.token ?? (await readAdminToken(data).catch(() => newSecret()))
  const operators = new Operators(ownOfService, admin.tokens, systemClock)
  const operator = operators.find(`Bearer ${own}`)
  if (operator === undefined) return { refusal: unknownOperator(`Bearer ${own}`).message }
  if (operators.hasExpired(operator)) return { refusal: expiredOperator(operator).message }
  if (hasRight(operator.role, 'administer')) return { operator: operator.name }
  return { refusal: refusedOperator(operator, 'administer').message }
}
