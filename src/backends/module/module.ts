import type { Readable } from 'node:stream'
import type { Backend, BackendAnswer, Call, CallBody } from '../../contracts/backend.ts'
import type { Json, ModuleBackend, ModuleBody, ModuleCall } from '../../contracts/module.ts'
import { type After, after as realAfter, type Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import { type Blamed, onAccountOf } from '../../modules/blame.ts'
import { type AnswerRules, checkAnswer, discard, faultOf } from './answer.ts'
import { ModuleStream } from './stream.ts'
import { plainValue } from './value.ts'
import { passedNames } from '../forward/response.ts'

export interface ModuleRules {
  readonly name: string
  /** Milliseconds until an answer must have begun: of a stream, until its first piece. */
  readonly timeout: number
  /** Milliseconds between two pieces of a stream. */
  readonly idle: number
  readonly responseHeaders: readonly string[]
  /** Most bytes of a value as JSON. */
  readonly answerLimit: number
  /** Told of what the module's code threw where no call could be failed for it any more. Must not throw. */
  readonly failed: ModuleFailed
}

/** @param call the id of the call that it was done for; none at start */
export type ModuleFailed = (thrown: unknown, call: string | undefined) => void

/** One question to a module, and all that its code does for it. */
class Question implements Blamed {
  readonly #abort = new AbortController()
  readonly #reject: (fault: Fault) => void
  readonly #tell: (thrown: unknown) => void
  #stream: Readable | undefined
  #answered = false

  constructor(reject: (fault: Fault) => void, tell: (thrown: unknown) => void) {
    this.#reject = reject
    this.#tell = tell
  }

  get signal(): AbortSignal {
    return this.#abort.signal
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

/** A file or package of the user's (C8.1). It runs in this process: its bugs are caught here, as far as that goes. */
export class UserModule implements Backend {
  readonly name: string
  readonly format = 'value'
  readonly payload = 'bare'
  readonly #module: ModuleBackend
  readonly #rules: ModuleRules
  readonly #passed: ReadonlySet<string>
  readonly #clock: Clock
  readonly #after: After

  constructor(module: ModuleBackend, rules: ModuleRules, clock: Clock, after: After = realAfter) {
    this.name = rules.name
    this.#module = module
    this.#rules = rules
    this.#passed = passedNames(rules.responseHeaders)
    this.#clock = clock
    this.#after = after
  }

  /** Rejects with a fault of C8.4: `upstream_broken` for whatever the module does wrong, `upstream_timeout`. */
  answer(call: Call): Promise<BackendAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<BackendAnswer>()
    const question = new Question(reject, (thrown) => this.#rules.failed(thrown, call.id))
    const cancel = this.#after(this.#rules.timeout, () => question.stop(new Fault('upstream_timeout')))
    call.onCancel(() =>
      question.stop(new Fault('client_gone', { detail: 'the client left while the module was working' })),
    )
    void onAccountOf(question, () => this.#ask(call, question))
      .then((answer) => {
        question.answered()
        if (question.signal.aborted) discard(answer.body)
        else resolve(answer)
      }, reject)
      .finally(cancel)
    return promise
  }

  async #ask(call: Call, question: Question): Promise<BackendAnswer> {
    try {
      const given: unknown = await this.#module.answer(callOf(call, question.signal))
      const answer = await checkAnswer(given, this.#answerRules(call))
      if (!question.hold(answer)) discard(answer.body)
      else if (call.method !== 'HEAD') await begun(answer)
      return call.method === 'HEAD' ? withoutStream(answer) : answer
    } catch (thrown) {
      throw faultOf(thrown)
    }
  }

  #answerRules({ headers }: Call): AnswerRules {
    return {
      passed: this.#passed,
      conditional: headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined,
      ranged: headers['range'] !== undefined,
      now: this.#clock.now(),
      streams: { idle: this.#rules.idle, after: this.#after },
      limit: this.#rules.answerLimit,
    }
  }

  /** What it does when it is asked for no call in particular. */
  readonly #own: Blamed = { failed: (thrown) => this.#rules.failed(thrown, undefined) }

  /** What throws cannot answer. */
  healthy(): boolean {
    try {
      return onAccountOf(this.#own, () => this.#module.healthy?.()) !== false
    } catch {
      return false
    }
  }

  /** Never rejects: nothing is asked any more. */
  async close(): Promise<void> {
    try {
      await onAccountOf(this.#own, () => this.#module.close?.())
    } catch {
      // a module that cannot close must not keep others from closing
    }
  }
}

/**
 * Waits for the first piece of a stream: one that fails, or says nothing, before that is a fault and no 200. Not of an
 * event stream, which may have nothing to say for long: its client is told at once that it is open.
 */
async function begun({ body }: BackendAnswer): Promise<void> {
  if (body.kind !== 'stream' || !(body.stream instanceof ModuleStream)) return
  if (body.contentType?.toLowerCase().startsWith('text/event-stream') === true) return
  await body.stream.begin()
}

function withoutStream(answer: BackendAnswer): BackendAnswer {
  if (answer.body.kind !== 'stream') return answer
  discard(answer.body)
  return { ...answer, body: { kind: 'none' } }
}

/** The call as a module sees it: copies where what is behind them is shared, since its code may change what it gets. */
function callOf(call: Call, signal: AbortSignal): ModuleCall {
  const { principal } = call
  if (principal === undefined) throw new Fault('internal', { detail: 'a module was called for nobody' })
  return {
    id: call.id,
    action: `${call.action.area}/${withoutTypes(call.action.action)}`,
    version: call.version,
    method: call.method === 'HEAD' ? 'GET' : call.method,
    business: call.business,
    fund: call.fund,
    params: { ...call.params },
    query: new URLSearchParams(call.target.query),
    caller: {
      subject: principal.subject,
      client: principal.client,
      scopes: new Set(principal.scopes),
    },
    headers: { ...call.headers },
    body: bodyOf(call.body),
    accept: call.accept,
    clientAddress: call.clientAddress,
    traceparent: call.traceparent,
    signal,
  }
}

/** The names of parameters alone: `{memberId:uuid}` is `{memberId}`. */
const withoutTypes = (action: string): string => action.replace(/\{([^:{}]+):(?:[^{}]|\{[^}]*\})*\}/g, '{$1}')

function bodyOf(body: CallBody): ModuleBody {
  if (body.kind === 'value') return { kind: 'value', value: plainValue(body.value) as Json }
  if (body.kind !== 'bytes') return body
  throw new Fault('internal', { detail: 'a module was given a body that was not parsed' })
}
