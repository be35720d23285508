import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { parseDpop, usesDpop } from '../../base/http/head/authorization.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { isUserinfo } from './checks.ts'
import type { Runtime } from './runtime.ts'

/** The results of checking a proof that the answer needs. */
interface ProofFindings {
  nonce?: string | undefined
}

/**
 * Requires proof of the key that a token is bound to, for this very call (C4.4a). A token that is bound to no key is sent as
 * Bearer. For a Bearer call only one letter is read here.
 * @throws its faults (order.ts)
 */
export function requireProof(
  runtime: Runtime,
  exchange: Exchange,
  principal: Principal,
  findings: ProofFindings,
): void {
  if (principal.confirmation === undefined && !usesDpop(exchange.head)) return
  const count = (result: string): void =>
    runtime.recorder.count?.('dpopProofs', isUserinfo(runtime, exchange) ? 'userinfo' : 'api', result)
  try {
    findings.nonce = checkProof(runtime, exchange, principal.confirmation)
    count('accepted')
  } catch (thrown) {
    count(toFault(thrown).code)
    throw thrown
  }
}

/** @returns a nonce that is newer than the proof's */
function checkProof(
  runtime: Runtime,
  { head, target }: Exchange,
  confirmation: string | undefined,
): string | undefined {
  if (confirmation === undefined) throw new Fault('unbound_token')
  const { proofs, tokens } = runtime
  const credentials = parseDpop(head, runtime, tokens.isKnown)
  if (credentials.kind !== 'token') throw new Fault('bound_token')
  if (proofs === undefined || target instanceof Fault)
    throw new Fault('internal', { detail: 'no proof can be checked' })
  const { dpop } = head.headers
  if (typeof dpop !== 'string') throw new Fault('invalid_dpop_proof', { say: 'There is no header DPoP.' })
  const { token } = credentials
  const url = proofs.origin + target.path
  const proof = proofs.verifier.verify(dpop, { method: head.method, url, token })
  if (proof.jkt !== confirmation) throw new Fault('other_key')
  if (!proofs.memory.isFirst(proof)) throw new Fault('proof_replayed')
  return proof.newerNonce
}
