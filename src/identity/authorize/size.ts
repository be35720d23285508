import { Fault } from '../../kernel/faults.ts'

/** Bytes of UTF-8 (C6.2.1). */
const LONGEST_STATE = 2048
/** Characters of the addresses of our own pages beside the request: their path, and a prompt that is added. */
const OWN_PART = 256

const refuse = (say: string): Fault => new Fault('oauth_bad_request', { say })

/**
 * Refuses what the addresses of our own pages could not carry, before a person has typed anything (C6.2.1, C6.3.3).
 * @param query what they carry, encoded
 * @param longestTarget characters
 * @throws Fault `oauth_bad_request`
 */
export function checkRequestSize(query: string, state: string | undefined, longestTarget: number): void {
  if (Buffer.byteLength(state ?? '') > LONGEST_STATE)
    throw refuse(`The state is longer than ${LONGEST_STATE} bytes.`)
  const most = longestTarget - OWN_PART
  if (query.length > most)
    throw refuse(
      `The parameters have ${query.length} characters when they are percent-encoded, and at most ${most} are allowed: shorten state, nonce or id_token_hint.`,
    )
}
