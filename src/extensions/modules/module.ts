import { type Blamed, onAccountOf } from '../../base/config/modules/blame.ts'
import type {
  ActionFacts,
  Backend,
  BackendAnswer,
  Call,
  PossibleAnswers,
} from '../../base/contracts/calls/backend.ts'
import type { ModuleBackend } from '../../base/contracts/calls/module.ts'
import { isBodiless } from '../../base/http/head/head.ts'
import { Passage, StreamInPieces } from '../../base/http/body/pieces.ts'
import { type After, after as realAfter, type Clock } from '../../base/kernel/clock.ts'
import { Fault, type FaultCode } from '../../base/kernel/faults.ts'
import { answersByStatus, passedNames } from '../../gateway/backends/forward/response/response.ts'
import { type AnswerRules, checkAnswer, discard, faultOf } from './answer.ts'
import { callOf } from './call.ts'
import { ModuleStream } from './stream.ts'

export interface QuestionRules {
  /** Milliseconds until an answer must have begun: of a stream, until its first piece. */
  readonly timeout: number
  readonly after: After
  /** Called with what the module's code threw where no call could be failed for it any more. Must not throw. */
  readonly failed: ModuleFailed
}

/** @param call the id of the call that it was done for; none at start */
export type ModuleFailed = (thrown: unknown, call: string | undefined) => void

/** One question to a module, and all that its code does for it. */
export class Question implements Blamed {
  readonly #abort = new AbortController()
  readonly #reject: (fault: Fault) => void
  readonly #log: (thrown: unknown) => void
  readonly #rules: QuestionRules
  #body: Passage | undefined
  #answered = false

  constructor(call: Call, rules: QuestionRules, reject: (fault: Fault) => void) {
    this.#rules = rules
    this.#reject = reject
    this.#log = (thrown) => rules.failed(thrown, call.id)
    call.onCancel(() =>
      this.stop(new Fault('client_gone', { detail: 'the client left while the module was working' })),
    )
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Rejects with the fault of what the code throws, or with `upstream_timeout`. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const { after, timeout } = this.#rules
    const cancel = after(timeout, () => this.stop(new Fault('upstream_timeout')))
    try {
      return await onAccountOf(this, work)
    } catch (thrown) {
      throw faultOf(thrown)
    } finally {
      cancel()
    }
  }

  /** Its listeners are the module's, and may throw. */
  stop(fault: Fault): void {
    if (this.signal.aborted) return
    onAccountOf(this, () => this.#abort.abort(fault))
    this.#body?.break(fault)
    this.#reject(fault)
  }

  /** What it threw outside of its answer is the fault of this call for as long as there is one. */
  failed(thrown: unknown): void {
    // It throws the reason for which it was stopped.
    if (this.signal.aborted && thrown === this.signal.reason) return
    const over = this.#answered ? this.#body?.isOver !== false : this.signal.aborted
    if (over || this.#answered) this.#log(thrown)
    if (!over) this.stop(faultOf(thrown))
  }

  /** Binds the body to this call. */
  hold(answer: BackendAnswer): BackendAnswer {
    const { body } = answer
    if (body.kind !== 'stream') return answer
    this.#body = new Passage(body.pieces)
    return { ...answer, body: { ...body, pieces: this.#body } }
  }

  answered(): void {
    this.#answered = true
  }
}

/** Lets a module answer a call. Resolves with what `work` makes, unless the question ends before; then it is let go. */
export function questionOf(
  call: Call,
  rules: QuestionRules,
  work: (question: Question) => Promise<BackendAnswer>,
): Promise<BackendAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<BackendAnswer>()
  const question = new Question(call, rules, reject)
  void work(question).then((answer) => {
    question.answered()
    if (question.signal.aborted) discard(answer.body)
    else resolve(answer)
  }, reject)
  return promise
}

/**
 * The answer once it has begun: a stream that fails, or says nothing, before its first piece is a fault and no 200. Not
 * an event stream, which may have nothing to say for long: its client learns at once that it is open. Of an answer to
 * HEAD the stream is let go.
 */
export async function begunAnswer(
  answer: BackendAnswer,
  method: string,
  question: Question,
): Promise<BackendAnswer> {
  const held = question.hold(answer)
  if (question.signal.aborted) discard(held.body)
  else if (method !== 'HEAD') await begun(answer)
  return method === 'HEAD' ? withoutStream(held) : held
}

async function begun({ body }: BackendAnswer): Promise<void> {
  if (body.kind !== 'stream' || !(body.pieces instanceof StreamInPieces)) return
  const { stream } = body.pieces
  if (!(stream instanceof ModuleStream)) return
  if (body.contentType?.toLowerCase().startsWith('text/event-stream') === true) return
  await stream.begin()
}

export function withoutStream(answer: BackendAnswer): BackendAnswer {
  if (answer.body.kind !== 'stream') return answer
  discard(answer.body)
  return { ...answer, body: { kind: 'none' } }
}

export interface ModuleRules extends Omit<QuestionRules, 'after'> {
  readonly name: string
  /** Milliseconds between two pieces of a stream. */
  readonly idle: number
  readonly responseHeaders: readonly string[]
  /** Most bytes of a value as JSON. */
  readonly answerLimit: number
}

/** What a module fails with besides the statuses that it answers. */
export const MODULE_FAULTS: readonly FaultCode[] = ['upstream_timeout', 'upstream_broken', 'answer_too_large']

/** A file or package of the user's (C8.1). It runs in this process: its bugs are caught here, as far as that goes. */
export class UserModule implements Backend {
  readonly name: string
  readonly format = 'value'
  readonly payload = 'bare'
  readonly #module: ModuleBackend
  readonly #rules: ModuleRules & QuestionRules
  readonly #answers: AnswerChecks

  constructor(module: ModuleBackend, rules: ModuleRules, clock: Clock, after: After = realAfter) {
    this.name = rules.name
    this.#module = module
    this.#rules = { ...rules, after }
    this.#answers = new AnswerChecks(rules, clock, after)
  }

  /** Rejects with a fault of C8.4: `upstream_broken` for whatever the module does wrong, `upstream_timeout`. */
  answer(call: Call): Promise<BackendAnswer> {
    return questionOf(call, this.#rules, (question) => question.run(() => this.#ask(call, question)))
  }

  async #ask(call: Call, question: Question): Promise<BackendAnswer> {
    const given: unknown = await this.#module.answer(callOf(call, question.signal))
    return begunAnswer(await checkAnswer(given, this.#answers.rulesOf(call)), call.method, question)
  }

  possibleAnswers(_action: ActionFacts, method: string): PossibleAnswers {
    return answersByStatus({ method, faults: MODULE_FAULTS })
  }

  healthy(): boolean {
    return isWell(this.#module, this.#rules)
  }

  close(): Promise<void> {
    return closeModule(this.#module, this.#rules)
  }
}

export class AnswerChecks {
  readonly #rules: Pick<ModuleRules, 'idle' | 'answerLimit'>
  readonly #passed: ReadonlySet<string>
  readonly #clock: Clock
  readonly #after: After

  constructor(
    rules: Pick<ModuleRules, 'idle' | 'answerLimit' | 'responseHeaders'>,
    clock: Clock,
    after: After,
  ) {
    this.#rules = rules
    this.#passed = passedNames(rules.responseHeaders)
    this.#clock = clock
    this.#after = after
  }

  rulesOf({ headers, method }: Pick<Call, 'headers' | 'method'>): AnswerRules {
    const reads = isBodiless(method)
    return {
      passed: this.#passed,
      conditional:
        reads && (headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined),
      ranged: reads && headers['range'] !== undefined,
      now: this.#clock.now(),
      streams: { idle: this.#rules.idle, after: this.#after },
      limit: this.#rules.answerLimit,
    }
  }
}

interface ModuleLife {
  healthy?(): boolean
  close?(): void | Promise<void>
}

/** For what it does when no call asks it. */
const ownAccount = ({ failed }: Pick<ModuleRules, 'failed'>): Blamed => ({
  failed: (thrown) => failed(thrown, undefined),
})

/** A module that throws is not well. */
export function isWell(module: ModuleLife, rules: Pick<ModuleRules, 'failed'>): boolean {
  try {
    return onAccountOf(ownAccount(rules), () => module.healthy?.()) !== false
  } catch {
    return false
  }
}

/** Never rejects: nothing is asked any more. */
export async function closeModule(module: ModuleLife, rules: Pick<ModuleRules, 'failed'>): Promise<void> {
  try {
    await onAccountOf(ownAccount(rules), () => module.close?.())
  } catch {
    // a module that cannot close must not keep others from closing
  }
}
