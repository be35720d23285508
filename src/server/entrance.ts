import type { EarlyAdmission } from '../contracts/admission.ts'
import type { Answer, Door } from '../contracts/exchange.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { RequestTarget } from '../http/request-target.ts'
import { Fault } from '../kernel/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import { connectionOf, type Wire } from './connection.ts'
import { IncomingExchange, type ReadingRules } from './incoming-exchange.ts'
import { type RenderFault, undecided } from './unreadable.ts'
import type { Upgrades } from './upgrades.ts'
import { writeAnswer } from './write-answer.ts'

export interface EntranceParts {
  readonly rules: ReadingRules
  readonly route: (target: RequestTarget | Fault) => Door
  readonly renderFault: RenderFault
  readonly recorder: Recorder
  readonly clock: Clock
  /** Absent: every request goes on to its door. */
  readonly earlyAdmission: EarlyAdmission | undefined
  /** Keeps the open websockets. */
  readonly upgrades: Upgrades
  /** Milliseconds that a client has to read each piece of its answer. */
  readonly patience: number
  /** Whether the answer shall close its connection. Asked once per answer. */
  readonly isDraining: () => boolean
}

/** Receives a request, has it answered by the door that its path names, and sends the answer. */
export class Entrance {
  readonly #parts: EntranceParts

  constructor(parts: EntranceParts) {
    this.#parts = parts
  }

  receive(wire: Wire): void {
    const connection = connectionOf(wire.request.socket)
    connection.enter(new IncomingExchange(wire, connection, this.#parts.rules), this.#serve)
  }

  readonly #serve = (exchange: IncomingExchange): void => {
    try {
      exchange.refusal = this.#parts.earlyAdmission?.refuse(exchange.clientAddress)
      const answer = this.#parts.route(exchange.target)(exchange)
      if (answer instanceof Promise) void this.#sendWhenSettled(exchange, answer)
      else this.#send(exchange, answer)
    } catch (thrown) {
      this.#fail(exchange, thrown)
    }
  }

  async #sendWhenSettled(exchange: IncomingExchange, answer: Promise<Answer>): Promise<void> {
    try {
      this.#send(exchange, await answer)
    } catch (thrown) {
      this.#fail(exchange, thrown)
    }
  }

  #send(exchange: IncomingExchange, answer: Answer): void {
    if (answer.tunnel === undefined)
      writeAnswer(exchange, answer, this.#parts.isDraining(), this.#parts.patience)
    else this.#parts.upgrades.add(answer.tunnel)
  }

  /** Doors render their own faults. A door that throws, or whose answer cannot be sent, has a defect (C2.3). */
  #fail(exchange: IncomingExchange, cause: unknown): void {
    const fault = new Fault('internal', { cause, detail: 'a door failed' })
    const { response } = exchange.wire
    const { clock, recorder } = this.#parts
    recorder.decision(undecided(exchange, fault, clock.monotonic() - exchange.startedAt))
    if (response.headersSent) response.destroy()
    else this.#send(exchange, this.#parts.renderFault(fault, exchange.head.headers.accept))
  }
}

/** The doors behind the public listener. */
export interface Doors {
  /** `/api`; in a sidecar every other path too, which it answers in an envelope (C2.3). */
  readonly api: Door
  /** `/.well-known/openapi.json` (C11.3.8). */
  readonly description: Door
  /** Every other path. Absent in a sidecar (C11.2). */
  readonly identity: Door | undefined
}

const API = 'api'
const DESCRIPTION_PATH = '/.well-known/openapi.json'

/** Chooses the door by the path alone, never by Host (contract, preface). */
export function compileRouting(doors: Doors): (target: RequestTarget | Fault) => Door {
  const { api, description, identity = api } = doors
  return (target) => {
    if (target instanceof Fault || target.segments[0] === API) return api
    return target.path === DESCRIPTION_PATH ? description : identity
  }
}
