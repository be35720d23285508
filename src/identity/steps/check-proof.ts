import type { IncomingHttpHeaders } from 'node:http'
import type { Proof } from '../../base/contracts/people/dpop.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { ClientAuthenticated, ProofChecked, Step, StepDependencies } from './endpoint.ts'
import { isFirstUse } from './once.ts'

/** Kind of record: proofs that were used, by their SHA-256, as long as they would be accepted again. */
export const PROOF = 'dpop_proof'

/** Where proofs are taken, as the metrics name it. */
type ProofPlace = 'token' | 'par'

/**
 * Checks the proof of possession, if there is one, and uses it up (C6.1.0, RFC 9449 §5). It comes right after the client's
 * check, so that a refused proof uses nothing else up: the client sends the same request again, with a nonce. Where tokens
 * are given, a client whose tokens are always bound has to send one.
 * @throws Fault `invalid_dpop_proof`, `use_dpop_nonce`, `proof_replayed`
 */
export const checkProof =
  (place: ProofPlace): Step<ClientAuthenticated, ProofChecked> =>
  async (context, dependencies) => {
    const { client, exchange } = context
    const text = exchange.head.headers['dpop']
    if (text === undefined && !(place === 'token' && client.dpop === 'required'))
      return { ...context, proof: undefined }
    const count = (result: string): void => dependencies.recorder.count?.('dpopProofs', place, result)
    try {
      const { jkt } = await useProof(text, context, dependencies)
      count('accepted')
      return { ...context, proof: { jkt } }
    } catch (thrown) {
      count(toFault(thrown).code)
      throw thrown
    }
  }

async function useProof(
  text: IncomingHttpHeaders[string],
  { attempt, client, exchange }: ClientAuthenticated,
  { proofs, store, urls }: StepDependencies,
): Promise<Proof> {
  if (text === undefined) throw proofMissing()
  if (client.dpop === 'off')
    throw new Fault('invalid_dpop_proof', { say: 'Tokens of this client are bound to no key: send none.' })
  const { head, target } = exchange
  if (target instanceof Fault) throw target
  const url = `${new URL(urls.issuer).origin}${target.path}${target.slashed ? '/' : ''}`
  const proof = proofs.verify(String(text), { method: head.method, url })
  attempt.newerNonce = proof.newerNonce
  if (!(await isFirstUse(store, PROOF, [proof.id], proof.expiresAt))) throw new Fault('proof_replayed')
  return proof
}

export const proofMissing = (): Fault =>
  new Fault('invalid_dpop_proof', { say: 'It is missing: send it in the header DPoP.' })
