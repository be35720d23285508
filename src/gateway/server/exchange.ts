import type { Readable } from 'node:stream'
import type { Carrier } from '../../base/contracts/calls/backend.ts'
import type { Exchange, Upgrade } from '../../base/contracts/calls/exchange.ts'
import { clientOrigin, type TrustedProxies } from '../../base/http/head/addresses.ts'
import { declaredBody, type Head } from '../../base/http/head/head.ts'
import { type HeadRules, readRequestTarget, type RequestTarget } from '../../base/http/head/request-target.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { Fault } from '../../base/kernel/faults.ts'
import { newRequestId } from '../../base/kernel/ids.ts'
import type { Connection, Wire } from './connection.ts'
import { NoBody, IncomingBody, type SlowBodies } from './request-body.ts'
import { UpgradeResponse } from './upgrades.ts'

export interface ReadingRules extends HeadRules {
  readonly trustedProxies: TrustedProxies | undefined
  readonly clock: Clock
  readonly watch: SlowBodies
  readonly room: WholeBodies
  /** The scheme of the listener. It holds where no trusted proxy says which one the client used. */
  readonly scheme: 'http' | 'https'
}

/** The most bytes of answers that are held whole, of all calls of a process together (C8.4). */
const MOST_HELD = 64 * 1024 ** 2

export class WholeBodies {
  #taken = 0

  /** How many bytes are taken. */
  get taken(): number {
    return this.#taken
  }

  /** @returns whether there is as much room left */
  take(bytes: number): boolean {
    if (this.#taken + bytes > MOST_HELD) return false
    this.#taken += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes
  }
}

const CONTINUE = /(?:^|[\s,])100-continue(?:$|[\s,])/i

export class IncomingExchange implements Exchange {
  readonly id = newRequestId()
  readonly head: Head
  readonly target: RequestTarget | Fault
  readonly clientAddress: string
  readonly scheme: 'http' | 'https'
  readonly startedAt: number
  readonly wire: Wire
  readonly connection: Connection
  /** Undefined where the head declares no body. */
  readonly declared: IncomingBody | undefined
  #noBody: NoBody | undefined
  refusal: Fault | undefined
  readonly upgrade: Upgrade | undefined
  readonly #room: WholeBodies
  /** How many bytes of `#room` this exchange has taken. */
  #held = 0
  readonly #atEnd: (() => void)[] = []

  constructor(wire: Wire, connection: Connection, rules: ReadingRules) {
    this.upgrade = wire.response instanceof UpgradeResponse ? wire.response.upgrade : undefined
    this.startedAt = rules.clock.monotonic()
    this.wire = wire
    this.connection = connection
    this.#room = rules.room
    this.head = readHead(wire, connection)
    this.target = readRequestTarget(this.head, rules)
    const origin = rules.trustedProxies && clientOrigin(this.head, rules.trustedProxies)
    this.clientAddress = origin?.address ?? connection.peer
    this.scheme = origin?.scheme ?? rules.scheme
    // The head may have failed its checks. Then anything but a plain 0 counts as a body.
    this.declared = declaredBody(this.head) === 0 ? undefined : this.#declare(rules.watch)
  }

  #declare(watch: SlowBodies): IncomingBody {
    const { request, response } = this.wire
    // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored. One that is not 100-continue may be answered 417, which
    // the contract has no row for: it is ignored too.
    const expects = request.httpVersion === '1.1' && CONTINUE.test(request.headers.expect ?? '')
    return new IncomingBody(request, response, watch, expects)
  }

  get body(): Readable {
    return this.declared ?? (this.#noBody ??= new NoBody())
  }

  get carrier(): Carrier {
    return this.wire.carrier
  }

  hold(bytes: number): boolean {
    if (bytes < 0) {
      // At the end all was given back.
      this.#giveBack(Math.min(-bytes, this.#held))
      return true
    }
    if (!this.#room.take(bytes)) return false
    if (this.#held === 0) this.onEnd(() => this.#giveBack(this.#held))
    this.#held += bytes
    return true
  }

  #giveBack(bytes: number): void {
    this.#room.giveBack(bytes)
    this.#held -= bytes
  }

  get gone(): boolean {
    const { response } = this.wire
    return (response.destroyed && !response.writableFinished) || this.upgrade?.socket.destroyed === true
  }

  onGone(listener: () => void): void {
    const { response } = this.wire
    this.onEnd(() => {
      if (!response.writableFinished) listener()
    })
  }

  onEnd(listener: () => void): void {
    if (this.wire.response.destroyed) queueMicrotask(listener)
    else this.#atEnd.push(listener)
  }

  ended(): void {
    for (const listener of this.#atEnd) listener()
  }
}

function readHead({ request }: Wire, { remoteAddress }: Connection): Head {
  return {
    method: request.method ?? '',
    rawTarget: request.url ?? '',
    httpVersion: request.httpVersion,
    rawHeaders: request.rawHeaders,
    headers: request.headers,
    remoteAddress,
  }
}
