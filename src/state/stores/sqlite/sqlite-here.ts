import { monotonicMs } from '../../../base/kernel/clock.ts'
import { STORE_TIME } from '../../../base/kernel/store-budget.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import type { SqliteRequests } from './sqlite-link.ts'
import { type OpenedRequests, openRequests, type Reply, type VerbRequest } from './sqlite-requests.ts'
import type { SqliteVerb } from './sqlite-verbs.ts'
import { StoreError, type TroubleListener } from '../link/store-error.ts'
import { countConnection } from './store-files.ts'
import { RefusedWrites, unavailable } from '../link/store-link.ts'

/** Answers verbs in the thread that asks, which waits: for a command, whose few verbs take less time than a thread to start. */
export class SqliteHere implements SqliteRequests {
  readonly #plan: SqlitePlan
  readonly #connection: ReturnType<typeof countConnection>
  readonly #opened: OpenedRequests
  readonly #refusals = new RefusedWrites()
  #reply: Reply | undefined
  #closed = false
  #trouble: string | undefined

  /** Throws StoreError if the file cannot be used (T7). */
  constructor(plan: SqlitePlan, onTrouble: TroubleListener = () => undefined) {
    this.#plan = plan
    this.#connection = countConnection(plan.path)
    try {
      this.#opened = openRequests(
        plan,
        (descriptor) => this.#connection.keep([descriptor]),
        (message) => {
          if ('trouble' in message) onTrouble((this.#trouble = message.trouble))
          else [this.#reply] = message
        },
      )
    } catch (thrown) {
      this.#connection.end()
      throw thrown instanceof StoreError ? thrown : new StoreError(messageOf(thrown), { cause: thrown })
    }
  }

  get trouble(): string | undefined {
    return this.#trouble
  }

  get refusesWrites(): string | undefined {
    return this.#refusals.reason
  }

  get patience(): number | undefined {
    return this.#plan.deadline
  }

  readonly write: SqliteRequests['write'] = (verb, ...args) =>
    Promise.try(() => this.#ask(verb, args)) as never

  readonly read: SqliteRequests['read'] = (verb, ...args) => Promise.try(() => this.#ask(verb, args)) as never

  close(): Promise<void> {
    if (!this.#closed) this.#opened.close()
    this.#closed = true
    this.#connection.end()
    return Promise.resolve()
  }

  #ask(verb: SqliteVerb, args: readonly unknown[]): unknown {
    const { deadline = STORE_TIME, answerWithin = deadline } = this.#plan
    const request = { id: 0, verb, args, deadline: monotonicMs() + answerWithin }
    // As in SqliteLink: the compiler does not see that verb and arguments belong together.
    this.#opened.handler.answer([request as VerbRequest])
    const reply = this.#reply
    if (reply?.outcome === 'done') {
      this.#refusals.taken(verb)
      return reply.value
    }
    if (reply?.outcome === 'broken') throw reply.error
    if (reply?.refusal !== undefined) this.#refusals.refused(verb, reply.refusal)
    throw unavailable(reply?.detail ?? 'no answer')
  }
}
