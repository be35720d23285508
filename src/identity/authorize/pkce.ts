import type { Client } from '../../contracts/people.ts'
import { Fault } from '../../kernel/faults.ts'

const refuse = (say: string): Fault => new Fault('oauth_bad_request', { say })

/** RFC 7636 §4.2: SHA-256, base64url. */
const S256 = /^[A-Za-z0-9_-]{43}$/

/** C6.2.1: a confidential client that proves the code to be its own by the id_token's nonce may do without PKCE. */
const mayDoWithout = (params: ReadonlyMap<string, string>, openid: boolean, client: Client): boolean =>
  client.kind !== 'public' && !client.requirePkce && openid && params.has('nonce')

/** The challenge of a request; undefined if it has none and needs none. Throws Fault oauth_bad_request. */
export function readChallenge(
  params: ReadonlyMap<string, string>,
  openid: boolean,
  client: Client,
): string | undefined {
  const challenge = params.get('code_challenge')
  const method = params.get('code_challenge_method')
  if (challenge === undefined) {
    if (method !== undefined) throw refuse('The parameter code_challenge is missing.')
    if (mayDoWithout(params, openid, client)) return undefined
    throw refuse('The parameter code_challenge is missing: PKCE is required.')
  }
  // Without a method it would be plain, which protects nothing from whoever reads the request.
  if (method !== 'S256') throw refuse('The code_challenge_method must be S256.')
  if (!S256.test(challenge)) throw refuse('The code_challenge is not that of a SHA-256.')
  return challenge
}
