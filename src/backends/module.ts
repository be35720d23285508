import type { Backend, BackendAnswer, Call, CallBody } from '../contracts/backend.ts'
import type { Json, ModuleBackend, ModuleBody, ModuleCall } from '../contracts/module.ts'
import { after as realAfter, type After } from '../kernel/after.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { checkAnswer, discard, faultOf } from './module-answer.ts'
import { plainValue } from './module-value.ts'
import { passedNames } from './response-headers.ts'

export interface ModuleRules {
  readonly name: string
  /** Milliseconds until an answer must have begun. */
  readonly timeout: number
  readonly responseHeaders: readonly string[]
}

/** A file or package of the user's (C8.1). It runs in this process: its bugs are caught here, as far as that goes. */
export class UserModule implements Backend {
  readonly name: string
  readonly format = 'value'
  readonly payload = 'bare'
  readonly #module: ModuleBackend
  readonly #timeout: number
  readonly #passed: ReadonlySet<string>
  readonly #clock: Clock
  readonly #after: After

  constructor(module: ModuleBackend, rules: ModuleRules, clock: Clock, after: After = realAfter) {
    this.name = rules.name
    this.#module = module
    this.#timeout = rules.timeout
    this.#passed = passedNames(rules.responseHeaders)
    this.#clock = clock
    this.#after = after
  }

  /** Rejects with a fault of C8.4: `upstream_broken` for whatever the module does wrong, `upstream_timeout`. */
  answer(call: Call): Promise<BackendAnswer> {
    const abort = new AbortController()
    const { promise, resolve, reject } = Promise.withResolvers<BackendAnswer>()
    const stop = (fault: Fault): void => {
      abort.abort(fault)
      reject(fault)
    }
    const cancel = this.#after(this.#timeout, () => stop(new Fault('upstream_timeout')))
    call.onCancel(() => stop(new Fault('client_gone')))
    void this.#ask(call, abort.signal)
      .then((answer) => {
        if (abort.signal.aborted) discard(answer.body)
        else resolve(answer)
      }, reject)
      .finally(cancel)
    return promise
  }

  async #ask(call: Call, signal: AbortSignal): Promise<BackendAnswer> {
    const conditional =
      call.headers['if-none-match'] !== undefined || call.headers['if-modified-since'] !== undefined
    try {
      const given: unknown = await this.#module.answer(callOf(call, signal))
      const answer = checkAnswer(given, { passed: this.#passed, conditional, now: this.#clock.now() })
      return call.method === 'HEAD' ? withoutStream(answer) : answer
    } catch (thrown) {
      throw faultOf(thrown)
    }
  }

  /** What throws cannot answer. */
  healthy(): boolean {
    try {
      return this.#module.healthy?.() !== false
    } catch {
      return false
    }
  }

  /** Never rejects: nothing is asked any more. */
  async close(): Promise<void> {
    try {
      await this.#module.close?.()
    } catch {
      // a module that cannot close must not keep others from closing
    }
  }
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
