import type { PeopleCall } from '../../contracts/people-module.ts'
import type { After } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import { type Blamed, onAccountOf } from '../../modules/blame.ts'
import { PersonMistake } from './read-person.ts'
import { errorForLog } from './error-for-log.ts'

/** Milliseconds that a call of the module may take. */
export const CALL_DEADLINE = 2000

export interface ModuleCallParts {
  readonly after: After
  /** Told of what the module's code threw where no call waits for it any more. Must not throw. */
  readonly failed: (cause: Error) => void
}

export interface ModuleCall<T> {
  /** The function, for the log. */
  readonly name: string
  /** What no line of the log may hold. */
  readonly secrets?: readonly string[]
  readonly work: (call: PeopleCall) => unknown
  /** Reads what was answered. May throw PersonMistake. */
  readonly read: (answer: unknown) => T
}

/** Why a call failed. */
export type CallTrouble = 'late' | 'threw' | 'mistaken'

/** A failed call of the module: 503 to the client that waits for it. */
export class ModuleCallFault extends Fault {
  readonly trouble: CallTrouble

  constructor(trouble: CallTrouble, detail: string, cause?: Error) {
    super('people_unavailable', { detail: `directory.people: ${detail}`, cause, retryAfter: 1 })
    this.trouble = trouble
  }
}

/**
 * Calls the operator's code (C5.7), which may do anything: throw, never answer, answer late, throw later in a timer.
 * Each of these is the trouble of that call only.
 */
export class ModuleCalls {
  readonly #parts: ModuleCallParts

  constructor(parts: ModuleCallParts) {
    this.#parts = parts
  }

  /** Rejects with ModuleCallFault. What comes after the deadline is ignored. */
  run<T>({ name, secrets = [], work, read }: ModuleCall<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const { after, failed } = this.#parts
    const stop = new AbortController()
    let over = false
    const end = (settle: () => void): void => {
      if (over) return
      over = true
      cancel()
      settle()
    }
    const fail = (thrown: unknown): void => end(() => reject(faultOf(name, thrown, secrets)))
    const account: Blamed = {
      failed: (thrown) => (over ? failed(errorForLog(thrown, secrets)) : fail(thrown)),
    }
    const cancel = after(CALL_DEADLINE, () => {
      end(() => reject(new ModuleCallFault('late', `${name} took more than ${CALL_DEADLINE} ms`)))
      // Its listeners are the module's, and may throw.
      onAccountOf(account, () => stop.abort())
    })
    const answer = onAccountOf(account, async () => read(await work({ signal: stop.signal })))
    answer.then((value) => end(() => resolve(value)), fail)
    return promise
  }
}

function faultOf(name: string, thrown: unknown, secrets: readonly string[]): ModuleCallFault {
  if (thrown instanceof PersonMistake)
    return new ModuleCallFault('mistaken', `${name} answered nonsense: ${thrown.message}`)
  return new ModuleCallFault('threw', `${name} threw`, errorForLog(thrown, secrets))
}
