import type { Readable } from 'node:stream'
import type { BackendAnswer, Call } from '../../contracts/backend.ts'
import type { After } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import { type Blamed, onAccountOf } from '../../config/modules/blame.ts'
import { discard, faultOf } from './answer.ts'
import { ModuleStream } from './stream.ts'

export interface QuestionRules {
  /** Milliseconds until an answer must have begun: of a stream, until its first piece. */
  readonly timeout: number
  readonly after: After
  /** Told of what the module's code threw where no call could be failed for it any more. Must not throw. */
  readonly failed: ModuleFailed
}

/** @param call the id of the call that it was done for; none at start */
export type ModuleFailed = (thrown: unknown, call: string | undefined) => void

/** One question to a module, and all that its code does for it. */
export class Question implements Blamed {
  readonly #abort = new AbortController()
  readonly #reject: (fault: Fault) => void
  readonly #tell: (thrown: unknown) => void
  readonly #rules: QuestionRules
  #stream: Readable | undefined
  #answered = false

  /** @param reject fails the call */
  constructor(call: Call, rules: QuestionRules, reject: (fault: Fault) => void) {
    this.#rules = rules
    this.#reject = reject
    this.#tell = (thrown) => rules.failed(thrown, call.id)
    call.onCancel(() =>
      this.stop(new Fault('client_gone', { detail: 'the client left while the module was working' })),
    )
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /**
   * Runs the module's code on the call's account. If it takes too long, the call fails with `upstream_timeout`. Rejects
   * with the fault of what it throws.
   */
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
    this.#stream?.destroy(fault)
    this.#reject(fault)
  }

  /** What it threw outside of its answer is the fault of this call for as long as there is one. */
  failed(thrown: unknown): void {
    // It was told to stop, and passes that on.
    if (this.signal.aborted && thrown === this.signal.reason) return
    const over = this.#answered ? this.#stream === undefined || this.#stream.closed : this.signal.aborted
    if (over || this.#answered) this.#tell(thrown)
    if (!over) this.stop(faultOf(thrown))
  }

  /** From now on the body is bound to this call. False: nobody waits for it any more. */
  hold({ body }: BackendAnswer): boolean {
    this.#stream = body.kind === 'stream' ? body.stream : undefined
    return !this.signal.aborted
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
 * an event stream, which may have nothing to say for long: its client is told at once that it is open. Of an answer to
 * HEAD the stream is let go.
 */
export async function begunAnswer(
  answer: BackendAnswer,
  method: string,
  question: Question,
): Promise<BackendAnswer> {
  if (!question.hold(answer)) discard(answer.body)
  else if (method !== 'HEAD') await begun(answer)
  return method === 'HEAD' ? withoutStream(answer) : answer
}

async function begun({ body }: BackendAnswer): Promise<void> {
  if (body.kind !== 'stream' || !(body.stream instanceof ModuleStream)) return
  if (body.contentType?.toLowerCase().startsWith('text/event-stream') === true) return
  await body.stream.begin()
}

export function withoutStream(answer: BackendAnswer): BackendAnswer {
  if (answer.body.kind !== 'stream') return answer
  discard(answer.body)
  return { ...answer, body: { kind: 'none' } }
}
