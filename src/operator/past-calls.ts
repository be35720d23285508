/** The admin API's route for calls of the past (C14.4). */
import { NotACallLine, readCallLine, type LoggedCall } from '../watch/log/call-lines.ts'
import type { PastAnswer } from '../watch/past-calls.ts'
import {
  type Operation,
  members,
  notFound,
  ok,
  problemsSchema,
  reject,
  type Schema,
  text,
  WHO,
} from './operation.ts'

const LONGEST_LINE = 65_536

const THEN: Schema = {
  type: 'object',
  properties: {
    requestId: text('Of its answer.'),
    at: text('When it came.'),
    method: text('The method.'),
    path: text('Without the query. Absent if it could not be read.'),
    status: { type: 'integer', description: 'What was answered.' },
    reason: text('Why it was refused, as the log and the metrics name it.'),
    wouldRefuse: text('In a report-only area: what would have refused it.'),
    detail: text('What the log says of the fault.'),
    caller: {
      type: 'object',
      description: 'client, subject, issuer, scope, target: of its token, if it was verified.',
    },
    accept: text('Its Accept.'),
    contentType: text('Its Content-Type.'),
    websocket: { type: 'boolean', description: 'Whether it asked for a websocket.' },
  },
}

const DIFFERENCE = members(
  {
    then: text('`let in`, or the reason of the refusal.'),
    now: text('The same of now, or `unknown`.'),
    same: { type: 'boolean', description: 'Absent if it is not known what would be decided now.' },
    words: text('For people.'),
  },
  ['then', 'now', 'words'],
)

/** @throws NotACallLine */
function readQuestion({ request, line }: Readonly<Record<string, unknown>>): string | LoggedCall | undefined {
  if ((request === undefined) === (line === undefined)) return undefined
  return typeof line === 'string' ? readCallLine(line) : String(request)
}

const answerOf = ({ then, now, difference }: PastAnswer): unknown => ({
  then: { ...then, at: then.at === undefined ? undefined : new Date(then.at).toISOString() },
  now,
  difference,
})

export const PAST_CALL_ROUTE: Operation = {
  method: 'POST',
  path: '/explain/past',
  operationId: 'explainPast',
  needs: 'inspect',
  summary: 'What was decided about a call of the past, what would be now, and the difference',
  body: members({
    request: text(
      'The X-Request-Id of its answer: one of the last calls, which each process keeps in memory.',
      {
        maxLength: 128,
      },
    ),
    line: text('In place of `request`: the line of the log that tells of the call.', {
      maxLength: LONGEST_LINE,
    }),
    ...WHO,
  }),
  answers: {
    200: [
      'Then, now, and the difference. `now` is as /explain answers it; absent if too little is known',
      members({ then: THEN, now: { type: 'object' }, difference: DIFFERENCE }, ['then', 'difference']),
    ],
    404: ['No process keeps this call', problemsSchema],
  },
  handle: async (control, { body, operator }) => {
    try {
      const question = readQuestion(body)
      if (question === undefined) return reject(['expected `request` or `line`: one of them'])
      const answer = await control.explainPast(question, operator)
      return answer === undefined ? notFound('no process keeps this call', [ELSEWHERE]) : ok(answerOf(answer))
    } catch (thrown) {
      if (!(thrown instanceof NotACallLine)) throw thrown
      return reject([`line  ${thrown.message}`])
    }
  },
}

const ELSEWHERE =
  'each process keeps its last 1,000 refused and 200 other calls since its start; the log has a line of every call'
