import type { BackendAnswer } from '../../base/contracts/calls/backend.ts'
import type { ForwardedCall, Module, ModuleCall } from '../../base/contracts/calls/module.ts'

/** A module as it is asked: with an `answer`, whichever form its code has. */
export interface AnsweringModule {
  readonly made: Module
  /** The answers of the upstream that its code may look at. The request to the upstream depends on it. */
  readonly sees: 'no answer' | 'one answer' | 'all answers'
  answer(call: ModuleCall, time: ModuleTime): unknown
}

/** The time that a module has. It runs when `answer` is called, and stops when the answer has begun. */
interface ModuleTime {
  /** Gives the module all of its time, from now on. */
  startTime(): void
  stopTime(): void
}

/**
 * Checks what a factory made, and makes an `answer` of the short forms.
 * @param isOver whether it runs around another backend
 * @throws Error that says why it cannot be used
 */
export function answeringModule(made: unknown, isOver: boolean): AnsweringModule {
  const answers = hasFunction(made, 'answer')
  const isShort = hasFunction(made, 'request') || hasFunction(made, 'response')
  // Without `over`, functions of these names are the module's own business.
  if (answers && isShort && isOver)
    throw new Error('what it made has `answer` beside `request` or `response`; expected one of the two ways')
  if (answers && isOver && ((made as Module).answer?.length ?? 0) > 1)
    throw new Error('`answer` takes one argument: use `call.forward` in place of the second')
  if (answers) return withAnswer(made as Module)
  if (isShort && isOver) return withShortForms(made as Module)
  if (isShort)
    throw new Error(
      'what it made has `request` or `response` and no `answer`, but there is no backend to send requests to; ' +
        'name one in `over`, or make a function `answer`',
    )
  throw new Error(
    isOver
      ? 'what it made has none of the functions `answer`, `request` and `response`; ' +
          'return an object with `answer`, or with `request`, `response` or both'
      : 'what it made has no function `answer`; return an object with one',
  )
}

const hasFunction = (made: unknown, name: keyof Module): boolean =>
  typeof made === 'object' &&
  made !== null &&
  name in made &&
  typeof (made as Readonly<Record<string, unknown>>)[name] === 'function'

const withAnswer = (made: Module): AnsweringModule => ({
  made,
  sees: 'all answers',
  answer: (call) => made.answer?.(call),
})

const NOT_MODIFIED = 304

/** `request` and `response` each have the module's time; the forwarder has its own deadlines in between. */
const withShortForms = (made: Module): AnsweringModule => ({
  made,
  sees: made.response === undefined ? 'no answer' : 'one answer',
  answer: async (call: ForwardedCall, time) => {
    const changes = await made.request?.(call)
    time.stopTime()
    const answer = await call.forward(changes)
    if (made.response === undefined) return answer
    if (answer.status === NOT_MODIFIED) return { ...answer, headers: weakened(answer.headers) }
    time.startTime()
    return made.response(call, answer)
  },
})

/** With a weak entity tag in place of a strong one, which is of other bytes than the client gets (RFC 9110 §8.8.1). */
export function weakened(headers: BackendAnswer['headers']): BackendAnswer['headers'] {
  const { etag } = headers
  return typeof etag === 'string' && etag.startsWith('"') ? { ...headers, etag: `W/${etag}` } : headers
}
