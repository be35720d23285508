/** Checks the proofs of calls (C4.4a). */
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { CallProofs } from '../../gateway/decide/runtime.ts'
import type { ProofVerifier } from './proof.ts'
import { nonceHeader } from './proofs.ts'
import type { ReplayMemory } from './replay-memory.ts'
import { PROOF_ALGORITHMS } from './schema.ts'

export const SCHEME = 'DPoP'

interface CallProofParts {
  readonly verifier: ProofVerifier
  /** `{base_url}`, whose origin proofs name. */
  readonly baseUrl: string
  readonly memory: ReplayMemory
  readonly recorder: Pick<Recorder, 'count'>
}

export function openCallProofs({ verifier, baseUrl, memory, recorder }: CallProofParts): CallProofs {
  const { origin } = new URL(baseUrl)
  const checkWith =
    (seen: Pick<ReplayMemory, 'isFirst'>): CallProofs['check'] =>
    ({ exchange: { head, target }, key, token }) => {
      if (target instanceof Fault) throw target
      const { dpop } = head.headers
      if (typeof dpop !== 'string') throw new Fault('invalid_dpop_proof', { say: 'There is no header DPoP.' })
      const proof = verifier.verify(dpop, { method: head.method, url: origin + target.path, token })
      if (proof.jkt !== key) throw new Fault('other_key')
      if (!seen.isFirst(proof)) throw new Fault('proof_replayed')
      return proof.newerNonce === undefined ? undefined : nonceHeader(proof.newerNonce)
    }
  const proofs: CallProofs = {
    scheme: SCHEME,
    algorithms: PROOF_ALGORITHMS.join(' '),
    check: checkWith(memory),
    count: (door, result) => recorder.count?.('dpopProofs', door, result),
    preview: () => ({ ...proofs, check: checkWith({ isFirst: () => true }), count: () => undefined }),
  }
  return proofs
}
