import type { Answer } from '../../contracts/exchange.ts'
import { tokenAnswer } from '../answers.ts'
import type { Attempt, GrantChosen, Granted, ScopeRequested } from '../context.ts'
import type { Step, StepDependencies } from '../endpoint.ts'
import { hasValue, limitToClient, parseScope } from '../scopes.ts'
import { issueAccessToken, issueIdToken } from '../tokens/signed-tokens.ts'
import type { OpenedFamily } from '../tokens/families.ts'
import { Fault } from '../../kernel/faults.ts'

/** What every grant ends in (C6.1.3). */
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

/** For the record (C12). */
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

/** C6.1.0: scope syntax, catalogue, the client's allowance; without a `scope` the client's default (C5.5). */
export const requestScope: Step<GrantChosen, ScopeRequested> = (context, { catalogue, places }) => {
  const { client, params } = context
  const asked = params.get('scope')?.trim()
  const text = asked === undefined || asked === '' ? client.defaultScope : asked
  if (text === undefined)
    throw new Fault('invalid_scope', {
      say: 'The parameter scope is missing, and this client has no default.',
    })
  const requested = limitToClient(parseScope(text, catalogue), client, catalogue, places)
  return { ...context, requested }
}
