import type { ResponseHead } from './response-head.ts'

/**
 * Milliseconds that a connection may be kept after an answer, `most` at most. `Keep-Alive: timeout=5` says when it will
 * be closed over there: a call that is just then sent would fail.
 */
export function keepAfter({ headers }: ResponseHead, most: number): number {
  const hint = headers['keep-alive']
  if (hint === undefined) return most
  const [, seconds] = /(?:^|[\s,])timeout=([0-9]{1,6})/.exec(String(hint)) ?? []
  return seconds === undefined ? most : Math.min(most, (Number(seconds) - 1) * 1000)
}

const REQUEST_TIMEOUT = /^HTTP\/1\.[01] 408 /
const LONGEST_START = 'HTTP/1.1 408 '.length

/** A server that gives a silent connection up may say so unasked (RFC 9110 §15.5.9): then nothing went astray. */
export const isGivingUp = (bytes: Uint8Array, end: number): boolean =>
  REQUEST_TIMEOUT.test(Buffer.from(bytes.subarray(0, Math.min(end, LONGEST_START))).toString('latin1'))
