import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { Head } from '../../http/head/head.ts'
import type { PieceSource } from '../../http/body/pieces.ts'
import type { RequestTarget } from '../../http/head/request-target.ts'
import type { Fault } from '../../kernel/faults.ts'
import type { Carrier, Tunnel } from './backend.ts'

/** One request and its connection. `gateway/server/` makes it once, with everything that is read from the wire. */
export interface Exchange {
  /** The new X-Request-Id of this exchange (C2.6). */
  readonly id: string
  readonly head: Head
  /** Parsed once (C3.4), or the fault of reading the head or parsing the target. The first check throws that fault. */
  readonly target: RequestTarget | Fault
  /** The unread body. It must not be read before authentication (C4.17). */
  readonly body: Readable
  /** The user agent's address as the trusted proxies report it; the peer's address if no proxy is trusted. */
  readonly clientAddress: string
  /** The scheme that the client used, as the trusted proxies report it. */
  readonly scheme: 'http' | 'https'
  /** Clock.monotonic() in milliseconds, when the head had been read. */
  readonly startedAt: number
  /**
   * Takes room for a part of the answer that is held whole (C8.4), until the exchange has ended.
   * @param bytes below 0 they are given back
   * @returns false if there is none left: then the answer is to be passed on piece by piece
   */
  hold(bytes: number): boolean
  /** Whether the client left before the answer was complete. */
  readonly gone?: boolean
  /** Calls the listener once, soon after the client has left, if the answer was not complete then. */
  onGone(listener: () => void): void
  /** Calls the listener once, when the answer was sent completely or the client has left. */
  onEnd(listener: () => void): void
  readonly carrier: Carrier
  /** Set before the door is called if the service refuses the request, for example under overload. The first check throws it. */
  readonly refusal?: Fault | undefined
  /** Set if the client asks for an upgrade that the action allows. A door may then answer with a tunnel. */
  readonly upgrade?: Upgrade | undefined
}

/** A connection whose client asks for an upgrade (RFC 9110 §7.8). */
export interface Upgrade {
  readonly socket: Socket
  /** Bytes that the client has already sent after its request. */
  readonly head: Buffer
}

/** Bytes between two texts in ASCII, so that a payload is wrapped without a copy. */
export interface WrappedBytes {
  readonly before: string
  readonly bytes: Buffer
  readonly after: string
}

/** The answer of a door. Only `gateway/server/` writes it to a socket. */
export interface Answer {
  readonly status: number
  /** Without hop-by-hop headers and X-Request-Id, which `gateway/server/` adds. Names are spelled as they are sent. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** If its pieces break off, the connection is cut, so that a truncated answer never looks complete (C8.4). */
  readonly body: Buffer | string | WrappedBytes | PieceSource | undefined
  /** True if the connection is to be closed after this answer. */
  readonly close?: boolean
  /** The tunnel that took the connection over. Its 101 was sent already, and nothing of this answer is sent. */
  readonly tunnel?: Tunnel
}

/** Handles all requests of one kind of path: those below /api, or those of the identity endpoints. */
export type Door = (exchange: Exchange) => Answer | Promise<Answer>
