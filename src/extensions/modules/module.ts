import { type Blamed, onAccountOf } from '../../base/config/modules/blame.ts'
import type { BackendAnswer, Call } from '../../base/contracts/calls/backend.ts'
import type { Module } from '../../base/contracts/calls/module.ts'
import { isBodiless } from '../../base/http/head/head.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { FaultCode } from '../../base/kernel/faults.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import type { AddedBackend } from '../../gateway/backends/kinds.ts'
import { answersByStatus, passedNames } from '../../gateway/backends/forward/response/response.ts'
import {
  type AnswerRules,
  checkAnswer,
  checkHeaders,
  checkStatusOf,
  membersOf,
  withoutStream,
} from './answer.ts'
import { type AnsweringModule, weakened } from './answering.ts'
import { bodyOf, callOf } from './call.ts'
import { Forwards } from './forwards.ts'
import { Question, type QuestionRules } from './question.ts'
import { ReceivedAnswer, ReceivedBody } from './received-answer.ts'

interface ModuleRules extends QuestionRules {
  readonly name: string
  readonly clock: Clock
  /** How long a stream may pause between two pieces, in milliseconds. */
  readonly idle: number
  readonly responseHeaders: readonly string[]
  /** Most bytes of a value as JSON. */
  readonly answerLimit: number
}

/** The faults of a module besides the statuses that it answers. */
const MODULE_FAULTS: readonly FaultCode[] = ['upstream_timeout', 'upstream_broken', 'answer_too_large']

/**
 * A file or package of the user's as a backend (C8.1). It runs in this process: its bugs are caught here, as far as that
 * goes. Around another backend it has the formats of that one, so that what the code leaves alone passes as it would
 * without it.
 * @param under the backend that it runs around (C8.9); for an operation, that backend's view. Its opener closes it
 */
export function userModule(module: AnsweringModule, rules: ModuleRules, under?: HttpBackend): AddedBackend {
  const { name } = rules
  const responseHeaders = [...(under?.rules.responseHeaders ?? []), ...rules.responseHeaders]
  const headers = passedNames(responseHeaders)
  const sender = rules.responseHeaders.length === 0 ? under : under?.withRules({ responseHeaders })
  return {
    name,
    ...(sender === undefined ? VALUE : formatsOf(sender)),
    // Rejects with a fault of C8.4: the forwarder's, or one of MODULE_FAULTS.
    answer: (call) => {
      const run = { call, module, name, sender: sender?.at(call), rules: answerRules(call, rules, headers) }
      return Question.answer(call, rules, (question) => answered(run, question))
    },
    possibleAnswers: (action, method) => {
      if (sender === undefined) return answersByStatus({ method, faults: MODULE_FAULTS })
      const answers = sender.possibleAnswers(action, method)
      return { ...answers, faults: [...new Set([...answers.faults, ...MODULE_FAULTS])] }
    },
    healthy: () => sender?.healthy() !== false && isWell(module.made, rules),
    close: () => closeModule(module.made, rules),
    around: (view) => userModule(module, rules, view),
  }
}

const VALUE = { format: 'value', payload: 'bare' } as const

const formatsOf = (sender: HttpBackend) => ({
  format: sender.format,
  payload: sender.payload,
  types: sender.types,
  isSearched: sender.isSearched,
  ranges: sender.ranges,
  xml: sender.xml,
  data: sender.data,
  namesValues: sender.namesValues,
  bodyUse: sender.bodyUse,
  keptOut: sender.keptOut,
  requestHeaders: sender.requestHeaders,
  sendsAnything: true,
})

function answerRules(
  { headers, method }: Call,
  rules: ModuleRules,
  passed: ReadonlySet<string>,
): AnswerRules {
  const reads = isBodiless(method)
  return {
    passed,
    conditional:
      reads && (headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined),
    ranged: reads && headers['range'] !== undefined,
    now: () => rules.clock.now(),
    streams: { idle: rules.idle, after: rules.after },
    limit: rules.answerLimit,
  }
}

/** One call of a module. */
interface Run {
  readonly call: Call
  readonly module: AnsweringModule
  readonly name: string
  /** Undefined: the module runs around no other backend. */
  readonly sender: HttpBackend | undefined
  readonly rules: AnswerRules
}

async function answered(run: Run, question: Question): Promise<BackendAnswer> {
  const { call, module, sender, rules } = run
  const forwards = sender && new Forwards(call, module.sees, { sender, question, rules })
  try {
    const body = bodyOf(call.body, forwards)
    const given = callOf(call, body instanceof Promise ? await body : body, question, forwards)
    question.startTime()
    const answer = await finished(await module.answer(given, question), run, question, forwards)
    if (question.isStreaming) forwards?.close()
    else forwards?.end()
    return answer
  } catch (thrown) {
    forwards?.end()
    throw forwards === undefined ? thrown : forwards.afterOthers(thrown)
  }
}

/** The client's answer, once it has begun. @param given what the module answered */
async function finished(
  given: unknown,
  run: Run,
  question: Question,
  forwards: Forwards | undefined,
): Promise<BackendAnswer> {
  if (given instanceof ReceivedAnswer) return passed(await given.body.pass(), run)
  const { status = 200, headers = {}, body } = membersOf(given, 'an answer')
  if (body instanceof ReceivedBody)
    return passed(await body.pass(checkStatusOf(status), checkHeaders(membersOf(headers, 'headers'))), run)
  const checked = await checkAnswer(given, run.rules)
  if (forwards === undefined) return question.begin(checked, run.call.method)
  const own = forwards.cameWith(checked.headers['etag']) ? weakened(checked.headers) : checked.headers
  const answer = { ...checked, headers: own, answerFormat: { name: run.name, ...VALUE } }
  return question.begin(answer, run.call.method, () => forwards.end())
}

/** A module that sees answers got that of a GET, with a body that an answer to HEAD has not. */
const passed = (answer: BackendAnswer, { call, module }: Run): BackendAnswer =>
  call.method === 'HEAD' && module.sees !== 'no answer' ? withoutStream(answer) : answer

/** For what a module does when no call asks it. */
const ownAccount = ({ failed }: ModuleRules): Blamed => ({ failed: (thrown) => failed(thrown, undefined) })

/** A module that throws is not well. */
function isWell(module: Module, rules: ModuleRules): boolean {
  try {
    return onAccountOf(ownAccount(rules), () => module.healthy?.()) !== false
  } catch {
    return false
  }
}

/** Never rejects: nothing is asked any more. */
async function closeModule(module: Module, rules: ModuleRules): Promise<void> {
  try {
    await onAccountOf(ownAccount(rules), () => module.close?.())
  } catch {
    // a module that cannot close must not keep others from closing
  }
}
