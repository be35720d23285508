/** Opens what protects clients by FAPI 2.0 and its parts: once for a process, then for each configuration. */
import { Fault } from '../../base/kernel/faults.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import type { ClientSecurity } from '../../identity/dependencies/client-security.ts'
import { holdersOf } from '../../identity/dependencies/dependencies.ts'
import { UNREAD_CLIENTS } from '../../identity/directory/records/people.ts'
import { isSidecar, provesKeys } from '../../identity/keys/issuers/issuers-schema.ts'
import type { IdentityParts, OpenSecurityProfile } from '../../operate/hooks/security-profile.ts'
import { openCallProofs, SCHEME } from './call-proofs.ts'
import { assertionMethod } from './client-assertion.ts'
import { type ClientKeys, openClientKeySets } from './client-keys.ts'
import { openNonces } from './nonces.ts'
import type { ProofVerifier } from './proof.ts'
import { nonceRules, openProofVerifier } from './proofs.ts'
import { PUSH } from './push.ts'
import { PushedRequests } from './pushed-requests.ts'
import { openReplayMemory } from './replay-memory.ts'
import { BY_KEY, identitySections, PROOF_ALGORITHMS, securityOf } from './schema.ts'
import { checkProof, proofMissing, readKeyBinding } from './token-proofs.ts'

export const openSecurity: OpenSecurityProfile = ({ clock, recorder }) => {
  const memory = openReplayMemory({
    clock,
    onForgotten: () => recorder.count?.('dpopProofs', 'api', 'forgotten'),
  })
  // They outlive a configuration, as addresses may be out of reach when another one loads.
  const keySets = openClientKeySets({ clock, recorder })
  return {
    endpoints: [PUSH],
    note: 'One that was got with a proof (DPoP, RFC 9449) is sent by the scheme DPoP, with a proof for each call.',
    callProofs({ configuration, keys, baseUrl, recorder: counted }) {
      if (isSidecar(configuration) && !configuration.issuers.some(provesKeys)) return undefined
      // A sidecar has no secret that all its processes share.
      const nonces =
        keys && nonceRules(identitySections(configuration.identity).dpop.nonce, openNonces(keys, clock))
      return openCallProofs({
        verifier: openProofVerifier({ clock, ...nonces }),
        baseUrl,
        memory,
        recorder: counted,
      })
    },
    clientSecurity(parts) {
      const rules = nonceRules(
        identitySections(parts.config).dpop.nonce,
        openNonces(parts.deriver, parts.clock),
      )
      const proofs = openProofVerifier({ clock: parts.clock, ...rules })
      return openClientSecurity(parts, proofs, keySets.readBy(parts.outbound))
    },
  }
}

/** Whether requests of a client are taken only if they were pushed (RFC 9126 §6). */
const mustPush = (client: object): boolean => securityOf(client).requirePar === true

/** The features that discovery announces, besides `private_key_jwt` (RFC 9449 §5.1, RFC 9126 §5). */
function usesOf(client: Pick<Client, 'grants'>): readonly string[] {
  return [
    ...(securityOf(client).dpop === 'off' ? [] : ['dpop']),
    ...(client.grants.includes('authorization_code')
      ? [mustPush(client) ? 'pushed_requests' : 'plain_requests']
      : []),
  ]
}

function openClientSecurity(
  parts: IdentityParts,
  proofs: ProofVerifier,
  clientKeys: ClientKeys,
): ClientSecurity {
  const pushed = new PushedRequests(parts)
  return {
    methods: [assertionMethod({ ...parts, people: holdersOf(parts.people), clientKeys })],
    // `pushed_requests` only matters if there are no plain ones.
    uses: { all: [BY_KEY, 'dpop', 'plain_requests'], of: usesOf },
    proofMetadata: (had) => (had.has('dpop') ? { dpop_signing_alg_values_supported: PROOF_ALGORITHMS } : {}),
    metadata: (had) => {
      const all = had.has('pushed_requests') && !had.has('plain_requests') && !had.has(UNREAD_CLIENTS)
      return all ? { require_pushed_authorization_requests: true } : {}
    },
    boundType: SCHEME,
    proveKey: (place, call) => checkProof(place, call, { ...parts, proofs }),
    proofMissing,
    keyOf: readKeyBinding,
    checkRequest(client, reference) {
      if (mustPush(client) && reference === undefined)
        throw new Fault('oauth_bad_request', {
          say: 'This client must push its requests: send the browser with client_id and request_uri alone.',
        })
    },
    findRequest: (...which) => pushed.find(...which),
    carryOver: (...cookies) => pushed.carryOver(...cookies),
  }
}
