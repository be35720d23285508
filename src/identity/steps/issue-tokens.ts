import type { Answer } from '../../contracts/exchange.ts'
import type { NewRecord } from '../../contracts/store.ts'
import { Fault } from '../../kernel/faults.ts'
import { tokenAnswer, tokenType } from '../answers.ts'
import type { GrantChosen, Granted, ScopeRequested } from '../context.ts'
import type { Step, StepDependencies } from '../endpoint.ts'
import { give, tokenIssued } from '../records.ts'
import { hasValue, limitToClient, parseScope, placeOf } from '../scopes.ts'
import type { DrawnFamily } from '../tokens/families.ts'
import { issueAccessToken, issueIdToken } from '../tokens/signed-tokens.ts'

/**
 * Makes the tokens of any grant, and the answer with them (C6.1.3). Until they are recorded nothing is used up and
 * nothing stored: after a failure the client can ask again with the same code or refresh token (C12.1.4).
 * @throws Fault `invalid_grant` if a rule has revoked the grant since the call began, or if it was used meanwhile;
 *   `audit_unavailable`
 */
export const issueTokens: Step<Granted, Answer> = async (granted, dependencies) => {
  const refresh = refreshOf(granted, dependencies)
  const access = await issueAccessToken(granted, refresh?.family ?? granted.family, dependencies)
  const idToken = granted.openid ? await issueIdToken(granted, access.token, dependencies) : undefined
  Object.assign(granted.attempt, { subject: granted.user.subject, ...placeOf(granted.scope) })
  await give(
    tokenIssued(granted, access.principal),
    () => putInForce(granted, refresh, dependencies),
    dependencies,
  )
  dependencies.issuedTokens.prime(access.token, access.principal)
  const body = {
    access_token: access.token,
    token_type: tokenType(dependencies),
    expires_in: access.lifetime,
    scope: granted.scope.text,
    ...(refresh && { refresh_token: refresh.token }),
    ...(idToken !== undefined && { id_token: idToken }),
  }
  return tokenAnswer(body, dependencies)
}

/** The refresh token of the answer, with the record of its family if that begins with it. */
type AnswerToken = Omit<DrawnFamily, 'record'> & Partial<DrawnFamily>

async function putInForce(
  { take }: Granted,
  refresh: AnswerToken | undefined,
  { store }: StepDependencies,
): Promise<void> {
  const begun: readonly NewRecord[] = refresh?.record ? [refresh.record] : []
  if (take !== undefined) return take(begun)
  for (const record of begun) await store.create(record.kind, record.key, record)
}

function refreshOf(granted: Granted, dependencies: StepDependencies): AnswerToken | undefined {
  const { asOf, authTime, client, grant, refresh, scope, user } = granted
  if (refresh.kind === 'rotated') return refresh
  if (!hasValue(scope, 'offline_access')) return undefined
  const record = { client: client.id, subject: user.subject, scope: scope.text, authTime, grant, asOf }
  return dependencies.families.draw(record, granted.family)
}

/**
 * Reads the requested scope, or the client's default if there is none, and limits it to the client (C6.1.0, C5.5).
 * @throws Fault `invalid_scope`
 */
export const requestScope: Step<GrantChosen, ScopeRequested> = async (context, { catalogue, places }) => {
  const { client, params } = context
  const sent = params.get('scope')?.trim()
  const text = sent === undefined || sent === '' ? client.defaultScope : sent
  if (text === undefined)
    throw new Fault('invalid_scope', {
      say: 'The parameter scope is missing, and this client has no default.',
    })
  const requested = await limitToClient(parseScope(text, catalogue), client, catalogue, places)
  return { ...context, requested }
}
