/**
 * The last calls that were decided (C14.4), in memory, so that an operator can ask why one was refused.
 *
 * Every call passes here. So the entries are made once and filled again, and a call leaves in them only what exists
 * anyway: nothing is built or copied. No token, no other header, no body and no query is kept; nor the exchange, which
 * holds all of them. (V8 may keep the text that a path was cut from, with its query, as long as the path. Nothing reads it.)
 */
import { targetText } from '../../base/config/scopes/scope-token.ts'
import type { Explanation } from '../../base/contracts/calls/explanation.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { DecisionEvent, Recorder } from '../../base/contracts/records/recorder.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { PastCaller, PastCall } from '../../base/contracts/processes/reports.ts'

/** How many calls each process keeps. */
export const KEPT = { refused: 1000, allowed: 200 } as const

/** The most characters of each text. A client chooses how long they are, and a thousand long ones would take too much memory. */
const MOST = { path: 1024, accept: 512, contentType: 512, detail: 2000 } as const

/** The same, with what another decision about the call needs and nobody sees. */
export interface KeptCall extends PastCall {
  readonly principal: Principal | undefined
  readonly clientAddress: string
}

export interface Difference {
  /** `let in`, or the reason of the refusal. */
  readonly then: string
  /** `let in`, `unknown`, or the reason of the refusal now. */
  readonly now: string
  /** Undefined if it is not known what would be decided now. */
  readonly same: boolean | undefined
  readonly words: string
}

export interface PastAnswer {
  readonly then: PastCall
  /** The explained decision of now; undefined if too little is known of the call. */
  readonly now: Explanation | undefined
  readonly difference: Difference
}

class Entry {
  id: string | undefined = undefined
  method = ''
  path: string | undefined = undefined
  status = 0
  fault: string | undefined = undefined
  wouldRefuse: string | undefined = undefined
  detail: string | undefined = undefined
  principal: Principal | undefined = undefined
  address = ''
  accept: string | undefined = undefined
  contentType: string | undefined = undefined
  websocket = false
  traceId: string | undefined = undefined
  version: number | undefined = undefined
}

const unlessLong = (text: string | undefined, most: number): string | undefined =>
  text === undefined || text.length > most ? undefined : text

/** A fixed number of entries that are filled in turn. */
class Ring {
  readonly #entries: readonly Entry[]
  /** Clock.monotonic() of each entry's call: as numbers of their own, so that none is allocated. */
  readonly #startedAt: Float64Array
  #next = 0

  constructor(size: number) {
    this.#entries = Array.from({ length: size }, () => new Entry())
    this.#startedAt = new Float64Array(size)
  }

  keep({ exchange, fault, reported, principal, status, traceId, version }: DecisionEvent): void {
    const at = this.#next
    const entry = this.#entries[at]
    if (entry === undefined) return
    this.#next = at + 1 === this.#entries.length ? 0 : at + 1
    this.#startedAt[at] = exchange.startedAt
    const { head, target } = exchange
    entry.id = exchange.id
    entry.method = head.method
    entry.path = target instanceof Fault ? undefined : unlessLong(target.path, MOST.path)
    entry.status = status
    entry.fault = fault?.code
    entry.wouldRefuse = reported?.fault.code
    entry.detail = unlessLong((fault ?? reported?.fault)?.facts.detail, MOST.detail)
    entry.principal = principal
    entry.address = exchange.clientAddress
    entry.accept = unlessLong(head.headers.accept, MOST.accept)
    entry.contentType = unlessLong(head.headers['content-type'], MOST.contentType)
    entry.websocket = exchange.upgrade !== undefined
    entry.traceId = traceId
    entry.version = version
  }

  find(id: string): { readonly entry: Entry; readonly startedAt: number } | undefined {
    const at = this.#entries.findIndex((entry) => entry.id === id)
    const entry = this.#entries[at]
    return entry && { entry, startedAt: this.#startedAt[at] ?? 0 }
  }
}

/** Keeps the last calls below `/api`, and those that could not be read. Logins and tokens are not among them. */
export class PastCalls implements Pick<Recorder, 'decision'> {
  readonly #refused = new Ring(KEPT.refused)
  readonly #allowed = new Ring(KEPT.allowed)
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  decision(event: DecisionEvent): void {
    if (event.door === 'identity') return
    const ring = event.fault === undefined && event.reported === undefined ? this.#allowed : this.#refused
    ring.keep(event)
  }

  /** The call that was answered with this `X-Request-Id`; undefined if it is not kept. */
  find(requestId: string): KeptCall | undefined {
    const found = this.#refused.find(requestId) ?? this.#allowed.find(requestId)
    if (found === undefined) return undefined
    const { entry, startedAt } = found
    const { method, path, status, wouldRefuse, principal, accept, contentType, websocket } = entry
    const { traceId, version } = entry
    return {
      requestId,
      method,
      path,
      status,
      reason: entry.fault,
      wouldRefuse,
      detail: entry.detail,
      at: Math.round(this.#clock.now() - (this.#clock.monotonic() - startedAt)),
      caller: principal && callerOf(principal),
      accept,
      contentType,
      websocket,
      traceId,
      version,
      principal,
      clientAddress: entry.address,
    }
  }
}

function callerOf({ client, isMachine, subject: sub, issuerName, scope, target }: Principal): PastCaller {
  const subject = isMachine ? undefined : sub
  return { client, subject, issuer: issuerName, scope, target: target && `target:${targetText(target)}` }
}
