import { type Blamed, onAccountOf } from '../../base/config/modules/blame.ts'
import type { BackendAnswer, BackendBody, Call } from '../../base/contracts/calls/backend.ts'
import { Passage, StreamInPieces } from '../../base/http/body/pieces.ts'
import type { After } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { discard, withoutStream } from './answer.ts'
import { ModuleStream } from './stream.ts'

export interface QuestionRules {
  /** How long an answer may take to begin, a stream to give its first piece, in milliseconds. */
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
  #cancelTimer: (() => void) | undefined
  #body: Passage | undefined
  #answered = false

  private constructor(call: Call, rules: QuestionRules, reject: (fault: Fault) => void) {
    this.#rules = rules
    this.#reject = reject
    this.#log = (thrown) => rules.failed(thrown, call.id)
    call.onCancel(() =>
      this.#stop(new Fault('client_gone', { detail: 'the client left while the module was working' })),
    )
  }

  /**
   * Runs what a module does for a call on its account, until `work` ends. Resolves with what that makes, unless the
   * question ends before; then that is let go. Rejects with the fault of what the code throws, or `upstream_timeout`.
   * @param work starts the time of the module
   */
  static answer(
    call: Call,
    rules: QuestionRules,
    work: (question: Question) => Promise<BackendAnswer>,
  ): Promise<BackendAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<BackendAnswer>()
    const question = new Question(call, rules, reject)
    void onAccountOf(question, () => work(question))
      .finally(() => question.stopTime())
      .then(
        (answer) => {
          question.#answered = true
          if (question.signal.aborted) discard(answer.body)
          else resolve(answer)
        },
        (thrown: unknown) => reject(faultOf(thrown)),
      )
    return promise
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Whether a stream of the module's is being read, or will be. */
  get isStreaming(): boolean {
    return this.#body?.isOver === false
  }

  /** Gives the module all of its time, from now on. */
  startTime(): void {
    this.stopTime()
    this.#cancelTimer = this.#rules.after(this.#rules.timeout, () =>
      this.#stop(new Fault('upstream_timeout')),
    )
  }

  stopTime(): void {
    this.#cancelTimer?.()
  }

  /** Its listeners are the module's, and may throw. */
  #stop(fault: Fault): void {
    if (this.signal.aborted) return
    onAccountOf(this, () => this.#abort.abort(fault))
    this.#body?.break(fault)
    this.#reject(fault)
  }

  /** An error that it threw outside of its answer is the fault of this call, as long as the call lasts. */
  failed(thrown: unknown): void {
    // It throws the reason for which it was stopped.
    if (this.signal.aborted && thrown === this.signal.reason) return
    const over = this.#answered ? !this.isStreaming : this.signal.aborted
    if (over || this.#answered) this.#log(thrown)
    if (!over) this.#stop(faultOf(thrown))
  }

  /**
   * Binds the body to this call, and waits until the answer has begun: a stream that fails, or says nothing, before its
   * first piece is a fault and no 200. Of an answer to HEAD the stream is let go.
   * @param over called once when a stream was read, has broken off or is no longer wanted
   */
  async begin(answer: BackendAnswer, method: string, over?: () => void): Promise<BackendAnswer> {
    const { body } = answer
    if (body.kind !== 'stream') return answer
    this.#body = new Passage(body.pieces, undefined, over)
    const held = { ...answer, body: { ...body, pieces: this.#body } }
    if (this.signal.aborted) discard(held.body)
    else if (method !== 'HEAD') await firstPiece(body)
    return method === 'HEAD' ? withoutStream(held) : held
  }
}

/** An event stream may have nothing to say for long: its client learns at once that it is open. */
async function firstPiece({ pieces, contentType }: Extract<BackendBody, { kind: 'stream' }>): Promise<void> {
  const stream = pieces instanceof StreamInPieces ? pieces.stream : undefined
  const isOfEvents = contentType?.toLowerCase().startsWith('text/event-stream') === true
  if (stream instanceof ModuleStream && !isOfEvents) await stream.begin()
}

/** The fault that a client gets for an error of a module. The error itself is in the log. */
const faultOf = (thrown: unknown): Fault =>
  thrown instanceof Fault
    ? thrown
    : new Fault('upstream_broken', { cause: thrown, detail: 'the module threw' })
