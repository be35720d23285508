/** Explains the decision about a call whose caller is kept, and whose token is not (C14.4). */
import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import type { CallTokens } from '../token-check.ts'
import { explainCall, type ExplainParts } from './explain.ts'
import type { DescribedCall, Explanation } from '../../contracts/explanation.ts'

/** Stands for the token. It is verified by `callerAgain` alone, which does not look at it. */
const IN_PLACE_OF_THE_TOKEN = 'a-token-that-was-not-kept'

/** Why a caller that was verified once is no longer accepted, in the words of TokenCheck. */
function refusalOf(principal: Principal, tokens: CallTokens): Fault {
  if (!principal.key.isTrusted()) return new Fault('invalid_token', { detail: 'its key was withdrawn' })
  return tokens.refusal(principal, tokens.ruleFor(principal) === undefined ? 'expired' : 'revoked')
}

/** Takes every token for that of one caller, who was verified before: expiry, revocation and key are judged anew. */
function callerAgain(principal: Principal, tokens: CallTokens): CallTokens {
  const judge = (): Promise<Principal> =>
    tokens.isCurrent(principal) ? Promise.resolve(principal) : Promise.reject(refusalOf(principal, tokens))
  return {
    isKnown: () => false,
    find: () => undefined,
    verify: judge,
    verifyLocally: judge,
    claimed: () => principal,
    ruleFor: (whose) => tokens.ruleFor(whose),
    isCurrent: (whose) => tokens.isCurrent(whose),
    refusal: (whose, why) => tokens.refusal(whose, why),
  }
}

/** As `explainCall`, for a call of this caller: what would be decided now. */
export function explainAgain(
  parts: ExplainParts,
  call: DescribedCall,
  principal: Principal | undefined,
): Promise<Explanation> {
  if (principal === undefined) return explainCall(parts, call)
  const { runtime } = parts
  const tokens = callerAgain(principal, runtime.tokens)
  return explainCall(
    { ...parts, runtime: { ...runtime, tokens } },
    { ...call, token: IN_PLACE_OF_THE_TOKEN, caller: undefined },
  )
}
