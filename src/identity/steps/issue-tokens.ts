import type { Answer } from '../../contracts/exchange.ts'
import { Fault } from '../../kernel/faults.ts'
import { tokenAnswer } from '../answers.ts'
import type { Attempt, GrantChosen, Granted, ScopeRequested } from '../context.ts'
import type { Step, StepDependencies } from '../endpoint.ts'
import { hasValue, limitToClient, parseScope } from '../scopes.ts'
import type { OpenedFamily } from '../tokens/families.ts'
import { issueAccessToken, issueIdToken } from '../tokens/signed-tokens.ts'

/**
 * Makes the tokens of any grant, and the answer with them (C6.1.3).
 * @throws Fault `invalid_grant` if a rule has revoked the grant since the call began
 */
export const issueTokens: Step<Granted, Answer> = async (granted, dependencies) => {
  const refresh = await refreshOf(granted, dependencies)
  const access = await issueAccessToken(granted, refresh?.family ?? granted.family, dependencies)
  const idToken = granted.openid ? await issueIdToken(granted, access.token, dependencies) : undefined
  Object.assign(granted.attempt, { subject: granted.user.subject, ...placeOf(granted) })
  await granted.conclude?.()
  dependencies.issuedTokens.prime(access.token, access.principal)
  const body = {
    access_token: access.token,
    token_type: 'bearer',
    expires_in: access.lifetime,
    scope: granted.scope.text,
    ...(refresh && { refresh_token: refresh.token }),
    ...(idToken !== undefined && { id_token: idToken }),
  }
  return tokenAnswer(body, dependencies)
}

/** For the log (C12). */
const placeOf = ({ scope: { target } }: Granted): Pick<Attempt, 'business' | 'fund'> => ({
  business: target?.business,
  fund: target?.level === 'fund' ? target.fund : undefined,
})

async function refreshOf(
  granted: Granted,
  dependencies: StepDependencies,
): Promise<OpenedFamily | undefined> {
  const { asOf, authTime, client, grant, refresh, scope, user } = granted
  if (refresh.kind === 'rotated') return refresh
  if (!hasValue(scope, 'offline_access')) return undefined
  const record = { client: client.id, subject: user.subject, scope: scope.text, authTime, grant, asOf }
  return dependencies.families.create(record, granted.family)
}

/**
 * Reads the requested scope, or the client's default if there is none, and limits it to the client (C6.1.0, C5.5).
 * @throws Fault `invalid_scope`
 */
export const requestScope: Step<GrantChosen, ScopeRequested> = (context, { catalogue, places }) => {
  const { client, params } = context
  const sent = params.get('scope')?.trim()
  const text = sent === undefined || sent === '' ? client.defaultScope : sent
  if (text === undefined)
    throw new Fault('invalid_scope', {
      say: 'The parameter scope is missing, and this client has no default.',
    })
  const requested = limitToClient(parseScope(text, catalogue), client, catalogue, places)
  return { ...context, requested }
}
