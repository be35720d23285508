import { Readable } from 'node:stream'
import type { BackendAnswer, Call } from '../contracts/backend.ts'
import type { Answer, Exchange } from '../contracts/exchange.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { toFault } from '../kernel/faults.ts'
import type { Decision } from './pipeline.ts'
import { represent } from './represent.ts'
import type { Runtime } from './runtime.ts'

interface Represented {
  readonly runtime: Runtime
  readonly exchange: Exchange
  /** What the backend took, in milliseconds. */
  readonly ms: number
}

/** The outcome of a call to a backend that gave a usable answer. */
export const ANSWERED = 'answered'

/** `represent`, and the record of the call to the backend: an answer that cannot be represented is none. */
export function representRecorded(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  how: Represented,
): Answer | Promise<Answer> {
  const { runtime, exchange } = how
  const { name } = decision.operation.backend
  let represented: Answer | Promise<Answer>
  try {
    represented = represent(answer, decision, call, runtime, exchange)
  } catch (thrown) {
    return recordUnusable(thrown, name, how)
  }
  if (!(represented instanceof Promise)) return recordAnswer(represented, name, how)
  return represented.then(
    (made) => recordAnswer(made, name, how),
    (thrown: unknown) => recordUnusable(thrown, name, how),
  )
}

function recordUnusable(thrown: unknown, backend: string, { runtime, ms }: Represented): never {
  runtime.recorder.backend({ backend, outcome: toFault(thrown).code, ms })
  throw thrown
}

/** Whether a stream is answered is known at its end: it is verified while it passes, and may break. */
function recordAnswer(answer: Answer, backend: string, { runtime, exchange, ms }: Represented): Answer {
  const { recorder } = runtime
  const { body } = answer
  if (!(body instanceof Readable)) {
    recorder.backend({ backend, outcome: ANSWERED, ms })
    return answer
  }
  let outcome: string = ANSWERED
  body.once('error', (thrown: unknown) => {
    outcome = noteCut(thrown, exchange, backend, recorder) ?? outcome
  })
  exchange.onEnd(() => recorder.backend({ backend, outcome, ms }))
  return answer
}

/**
 * A stream may break after the call's log line was written, which tells of the answer's head only. The client's
 * connection is then cut, and this line says why.
 * @returns the code of what broke it; undefined if the client has left
 */
function noteCut(thrown: unknown, { id }: Exchange, backend: string, recorder: Recorder): string | undefined {
  const { code, facts } = toFault(thrown)
  if (code === 'client_gone') return undefined
  const { detail, cause } = facts
  recorder.note('warn', 'answer_cut', { requestId: id, backend, reason: code, detail, cause })
  return code
}
