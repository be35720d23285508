/** Checks the proofs that come to the identity endpoints (C6.1.0, RFC 9449 §5). */
import type { IncomingHttpHeaders } from 'node:http'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { ClientSecurity } from '../../identity/dependencies/client-security.ts'
import type { IdentityDeps } from '../../identity/dependencies/dependencies.ts'
import { isFirstUse } from './first-use.ts'
import type { Proof, ProofVerifier } from './proof.ts'
import { nonceHeader } from './proofs.ts'
import { securityOf } from './schema.ts'

/** Kind of record: proofs that were used, by their SHA-256, as long as they would be accepted again. */
export const PROOF = 'dpop_proof'

type Call = Parameters<ClientSecurity['proveKey']>[1]

type Parts = Pick<IdentityDeps, 'recorder' | 'store' | 'urls'> & { readonly proofs: ProofVerifier }

/**
 * Checks the proof of possession, if there is one, and uses it up. Where tokens are given, a client whose tokens are always
 * bound has to send one: the client sends the same request again, with a nonce.
 * @throws Fault `invalid_dpop_proof`, `use_dpop_nonce`, `proof_replayed`
 */
export async function checkProof(
  place: string,
  call: Call,
  parts: Parts,
): Promise<Pick<Proof, 'jkt'> | undefined> {
  const text = call.exchange.head.headers['dpop']
  const isRequired = place === 'token' && securityOf(call.client).dpop === 'required'
  if (text === undefined && !isRequired) return undefined
  const count = (result: string): void => parts.recorder.count?.('dpopProofs', place, result)
  try {
    const { jkt } = await useProof(text, call, parts)
    count('accepted')
    return { jkt }
  } catch (thrown) {
    count(toFault(thrown).code)
    throw thrown
  }
}

async function useProof(
  text: IncomingHttpHeaders[string],
  { attempt, client, exchange }: Call,
  { proofs, store, urls }: Parts,
): Promise<Proof> {
  if (text === undefined) throw proofMissing()
  if (securityOf(client).dpop === 'off')
    throw new Fault('invalid_dpop_proof', { say: 'Tokens of this client are bound to no key: send none.' })
  const { head, target } = exchange
  if (target instanceof Fault) throw target
  const url = `${new URL(urls.issuer).origin}${target.path}${target.slashed ? '/' : ''}`
  const proof = proofs.verify(String(text), { method: head.method, url })
  if (proof.newerNonce !== undefined) attempt.headers = nonceHeader(proof.newerNonce)
  if (!(await isFirstUse(store, PROOF, [proof.id], proof.expiresAt))) throw new Fault('proof_replayed')
  return proof
}

export const proofMissing = (): Fault =>
  new Fault('invalid_dpop_proof', { say: 'It is missing: send it in the header DPoP.' })

/** RFC 7638 §3: SHA-256, base64url. */
const THUMBPRINT_FORM = /^[A-Za-z0-9_-]{43}$/

/** The key that a code is to be bound to (RFC 9449 §10). @throws Fault `oauth_bad_request` for what is no thumbprint */
export function readKeyBinding(params: ReadonlyMap<string, string>): string | undefined {
  const jkt = params.get('dpop_jkt')
  if (jkt !== undefined && !THUMBPRINT_FORM.test(jkt))
    throw new Fault('oauth_bad_request', { say: 'The dpop_jkt is no SHA-256 thumbprint.' })
  return jkt
}
