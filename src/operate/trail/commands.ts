/** The records of what commands do by themselves, on files or on a shared store (C12.1.7). */
import { type AuditedChange, byOperator } from '../../base/contracts/records/audited-change.ts'
import type { AuditEvent } from '../../base/kernel/audit-events.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  conflict,
  flagSchema,
  members,
  ok,
  problemsSchema,
  reject,
  type SharedOperation,
  textSchema,
  WHO,
} from '../operation/operation.ts'
import type { OperationContext } from '../operation/context.ts'
import { AdminError } from '../operation/errors.ts'

/** The event of each command, what it is about, and the one fact that is told of it. */
const ACTS = {
  'store.backed_up': { kind: 'store', fact: 'file' },
  'store.migrated': { kind: 'store', fact: 'finish' },
  'store.copied': { kind: 'store', fact: 'from' },
  'keys.resealed': { kind: 'key', fact: undefined },
} as const satisfies Partial<Record<AuditEvent, object>>

const FACTS = ['file', 'finish', 'from'] as const

/** An act of a command, with the fact of its event. */
export interface CommandAct {
  readonly event: keyof typeof ACTS
  readonly file?: string
  readonly finish?: boolean
  readonly from?: string
}

type RecordedAct = CommandAct & { readonly outcome: 'success' | 'refused' | 'failed' }

const LONGEST_PATH = { maxLength: 4096 }

/** Something that has happened already: it is not undone where its record cannot be written. Rejects with AdminError 503 then. */
async function record({ audit }: OperationContext, { body, operator }: AdminRequest): Promise<AdminAnswer> {
  if (!audit.on) return conflict('no audit trail is kept', ['see `audit.enabled`'])
  const { event, outcome, ...given } = body as unknown as RecordedAct
  const { kind, fact } = ACTS[event]
  const foreign = FACTS.filter((name) => name !== fact && given[name] !== undefined)
  if (foreign.length > 0) return reject(foreign.map((name) => `${name}  is no fact of ${event}`))
  const value = fact && given[fact]
  const act: AuditedChange = {
    event,
    on: { kind },
    ...(fact && value !== undefined && { change: { [fact]: value } }),
  }
  if (await audit.keep({ ...act, ...byOperator(operator), outcome })) return ok({ recorded: true })
  throw new AdminError(503, 'the audit trail cannot be written now', [
    'the record is held, and written when that is possible',
  ])
}

/** Only commands send it; where no service runs, they carry it out themselves. */
export const RECORD_COMMAND: SharedOperation = {
  method: 'POST',
  path: '/audit/commands',
  operationId: 'recordCommand',
  needs: 'administer',
  summary: 'Record what a command has done by itself: a copy of the store, its tables, its seals',
  body: members(
    {
      event: { enum: Object.keys(ACTS), description: 'What was done.' },
      outcome: { enum: ['success', 'refused', 'failed'], description: 'How it ended.' },
      file: textSchema('Of a backup: the file that has the copy.', LONGEST_PATH),
      finish: flagSchema('Of a migration: whether it took away what older versions used.'),
      from: textSchema('Of a copy to a shared store: the file that was copied.', LONGEST_PATH),
      ...WHO,
    },
    ['event', 'outcome'],
  ),
  answers: {
    200: ['Recorded', members({ recorded: flagSchema('Always true.') }, ['recorded'])],
    409: ['No trail is kept', problemsSchema],
  },
  runs: 'service or here',
  handle: record,
}
