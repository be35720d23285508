/** The admin API's route by which commands report what they do (C12.1.7). */
import type { JsonObject } from '../http/json.ts'
import type { AuditObject } from '../contracts/audit.ts'
import type { AuditedChange } from '../audit/audited-change.ts'
import { type ActOutcome, REPORTABLE } from './reported-acts.ts'
import { type Operation, count, members, ok, problemsSchema, refuse, reject, text, WHO } from './operation.ts'

/** Characters of `change` as JSON. */
const LONGEST_CHANGE = 8192

const body = members(
  {
    stage: {
      enum: ['begin', 'end', 'done'],
      description: 'Before it is done; after that; or only after it.',
    },
    event: { enum: [...REPORTABLE], description: 'What is done.' },
    outcome: { enum: ['success', 'refused', 'failed'], description: 'Unless it begins.' },
    intent: count('Of an end: what its begin was answered with.'),
    on: members({
      kind: text('`key` or `store`.'),
      id: text('Its id.'),
    }),
    change: { type: 'object', description: 'What has changed. No secret.' },
    ...WHO,
  },
  ['stage', 'event', 'on'],
)

interface Reported {
  readonly stage: 'begin' | 'end' | 'done'
  readonly event: (typeof REPORTABLE)[number]
  readonly outcome?: ActOutcome
  readonly intent?: number
  readonly on: AuditObject
  readonly change?: JsonObject
}

const actOf = ({ event, on, change }: Reported): AuditedChange => ({ event, on, ...(change && { change }) })

/** The record names the operator whose token was shown; what the command says of its user is claimed. */
export const ACT_ROUTE: Operation = {
  method: 'POST',
  path: '/audit/records',
  operationId: 'reportAct',
  needs: 'administer',
  summary: 'Record a change that a command makes to the keys or the store',
  body,
  answers: {
    200: ['Recorded', members({ intent: count('For the end of what has begun.') })],
    409: ['There is no such intent of this operator', problemsSchema],
  },
  handle: async ({ acts }, request) => {
    const reported = request.body as unknown as Reported
    const { stage, outcome = 'success', intent = 0, change = {} } = reported
    if (JSON.stringify(change).length > LONGEST_CHANGE)
      return reject([`body.change  is longer than ${LONGEST_CHANGE} characters`])
    const act = actOf(reported)
    if (stage === 'begin') return ok({ intent: await acts.begin(act, request.operator) })
    if (stage === 'done') await acts.keep(outcome, act, request.operator)
    else if (!(await acts.end(intent, outcome, act, request.operator)))
      return refuse('not recorded', ['no such act has begun: was the service restarted meanwhile?'])
    return ok({})
  },
}
