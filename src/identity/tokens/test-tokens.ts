import type { ClaimedCaller } from '../../contracts/claimed-callers.ts'
import type { TestToken, TestTokenAnswer, TestTokenRequest } from '../../contracts/test-tokens.ts'
import { Fault, type FaultCode, toFault } from '../../kernel/faults.ts'
import { LONGEST_TEST_TOKEN } from '../../kernel/lifetimes.ts'
import { isTargetValue } from '../../config/scopes/scope-token.ts'
import { findClaimedUser, resolveCaller } from '../claimed-callers.ts'
import type { StepDependencies } from '../endpoint.ts'
import { placeOf } from '../scopes.ts'
import { issueAccessToken } from './signed-tokens.ts'

/**
 * Issues an access token to an operator who tries a service (C11.5.7): what the token endpoint would give this client and
 * user, without their secrets, for a short time, and without a refresh token. It is not recorded here. Faults are answered,
 * since an error that crosses to another process keeps no reason.
 * @param candidates ids of clients that are tried one after the other, where the order names none
 */
export async function answerTestToken(
  order: TestTokenRequest,
  candidates: () => AsyncIterable<string>,
  dependencies: StepDependencies,
): Promise<TestTokenAnswer> {
  const { client } = order
  try {
    requireOpen(order.from, dependencies)
    const issued =
      client === undefined
        ? await issueToFirst(order, candidates(), dependencies)
        : await issue({ ...order, client }, dependencies)
    return { outcome: 'issued', issued }
  } catch (thrown) {
    const fault = toFault(thrown)
    return { outcome: 'refused', reason: fault.code, why: whyOf(fault) }
  }
}

const whyOf = ({ facts: { detail, say }, row }: Fault): string => detail ?? say ?? row.text

/** @throws Fault `identity_maintenance`, as the token endpoint does (C9.2) */
function requireOpen(from: string, { switches }: StepDependencies): void {
  const closure = switches.identity()
  if (closure !== undefined && !closure.admitsAddress(from)) throw new Fault('identity_maintenance')
}

/** It asks for a refresh token, and none is given. */
const WITHHELD = 'offline_access'

async function issue(caller: ClaimedCaller, dependencies: StepDependencies): Promise<TestToken> {
  const { asOf } = dependencies.rules
  const { client, user, scope, dropped } = await resolveCaller(caller, dependencies, WITHHELD)
  const granted = { asOf, client, user, scope }
  const longest = LONGEST_TEST_TOKEN / 1000
  const { token, lifetime, principal } = await issueAccessToken(granted, undefined, dependencies, longest)
  return {
    ...{ token, id: principal.tokenId ?? '', client: client.id, subject: user.subject },
    ...{ scope: scope.text, target: scope.values.find(isTargetValue), ...placeOf(scope) },
    // Where no scope was asked for, the client's own may have it.
    ...{
      expiresIn: lifetime,
      dropped: caller.scope ? dropped : dropped.filter((value) => value !== WITHHELD),
    },
  }
}

/** How near to a token a client was: the reason of the nearest one tells most. */
const NEARNESS: readonly FaultCode[] = ['invalid_scope', 'invalid_grant', 'unauthorized_client']

const nearnessOf = ({ code }: Fault): number =>
  NEARNESS.includes(code) ? NEARNESS.indexOf(code) : NEARNESS.length

interface Refused {
  readonly client: string
  readonly fault: Fault
}

const nearer = (one: Refused | undefined, other: Refused): Refused =>
  one !== undefined && nearnessOf(one.fault) <= nearnessOf(other.fault) ? one : other

/** @throws Fault that of the nearest client, if none is granted a token */
async function issueToFirst(
  order: TestTokenRequest,
  candidates: AsyncIterable<string>,
  dependencies: StepDependencies,
): Promise<TestToken> {
  // Before any client: a user who does not exist has none.
  await findClaimedUser(order, dependencies)
  let nearest: Refused | undefined
  for await (const client of candidates)
    try {
      return await issue({ ...order, client }, dependencies)
    } catch (thrown) {
      const fault = toFault(thrown)
      if (fault.status >= 500) throw fault
      nearest = nearer(nearest, { client, fault })
    }
  if (nearest === undefined) throw new Fault('invalid_client', { detail: 'there is no client' })
  const { client, fault } = nearest
  throw new Fault(fault.code, { detail: `no client is granted such a token; ${client}: ${whyOf(fault)}` })
}
