import type { IncomingHttpHeaders } from 'node:http'

/**
 * Whether an answer of this status has no content (RFC 9110 §6.4.1, §15.3.6). One of 205 is framed like any other, with
 * a length of 0; the others end with their head.
 */
export const hasNoContent = (status: number): boolean => status === 204 || status === 205 || status === 304

/** One request without its body, as it came off the wire. Made once, by `server/`; read by everyone. */
export interface Head {
  readonly method: string
  /** The request target exactly as sent: nothing may use it but `parseRequestTarget`. */
  readonly rawTarget: string
  /** "1.0" or "1.1". */
  readonly httpVersion: string
  /** Name, value, name, value … in order and case as received (node's rawHeaders). */
  readonly rawHeaders: readonly string[]
  /** By lower-case name; node joins what may repeat with ", ". */
  readonly headers: IncomingHttpHeaders
  /** The peer's address as the socket gives it. */
  readonly remoteAddress: string
}
