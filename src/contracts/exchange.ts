import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { Fault } from '../kernel/faults.ts'
import type { Head } from '../http/head.ts'
import type { RequestTarget } from '../http/request-target.ts'
import type { Tunnel } from './backend.ts'
import type { Carrier } from './carrier.ts'

/** One request on its way through a door. Made by `server/`, once, with everything that is read from the wire. */
export interface Exchange {
  /** Fresh X-Request-Id of this exchange (C2.6). */
  readonly id: string
  readonly head: Head
  /** Parsed once (C3.4), or the fault that its parsing or the head's reading met: the first check throws it. */
  readonly target: RequestTarget | Fault
  /** The body, unread. Reading it before authentication is forbidden (C4.17). */
  readonly body: Readable
  /** The user agent's address behind the trusted proxies; the peer's where none is trusted. */
  readonly clientAddress: string
  /** The scheme that the client used, as far as trusted proxies tell. */
  readonly scheme: 'http' | 'https'
  /** Clock.monotonic() when the head had been read. */
  readonly startedAt: number
  /** Whether the client has left before the answer was complete. */
  readonly gone?: boolean
  /** Calls the listener (once, soon) if the client leaves before the answer is complete. */
  onGone(listener: () => void): void
  /** Calls the listener once, when the answer was sent to its end or the client has left, whichever it is. */
  onEnd(listener: () => void): void
  /** Sends what a backend forwards for this exchange. */
  readonly carrier: Carrier
  /** Set before the door is asked where the service will not take the request on: the door's first check throws it. */
  readonly refusal?: Fault | undefined
  /** Set where the client asks for a websocket on an action that has one: then a door may answer with a tunnel. */
  readonly upgrade?: Upgrade | undefined
}

/** A connection that its client wants to use for a websocket (RFC 6455 §4.1), as its request left it. */
export interface Upgrade {
  readonly socket: Socket
  /** What came behind the request already. */
  readonly head: Buffer
}

/** What a door answers. Only `server/` writes it to a socket. */
export interface Answer {
  readonly status: number
  /** Without hop-by-hop headers and X-Request-Id, which `server/` adds. Names as they shall be sent. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** A stream that fails cuts the connection, so that a truncated answer never looks whole (C8.4). */
  readonly body: Buffer | string | Readable | undefined
  /** Set where `body` is text of which it is known that it is ASCII: then nobody has to count its bytes. */
  readonly ascii?: boolean
  /** Close the connection after it. */
  readonly close?: boolean
  /** The connection was handed over, and its 101 is sent: nothing of this answer is. */
  readonly tunnel?: Tunnel
}

/** An entrance to the service: everything that one kind of path does. */
export type Door = (exchange: Exchange) => Answer | Promise<Answer>
