import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { targetText } from '../../base/config/scopes/scope-token.ts'
import type { NewRecord } from '../../base/contracts/records/store.ts'
import type { RevocationCause } from '../../base/contracts/records/tokens.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { emptyAnswer, privateAnswer, tokenAnswer, tokenType } from '../steps/answers.ts'
import { createOf } from '../directory/records/stored-directory.ts'
import { noteCall, orUnavailable } from '../dependencies/dependencies.ts'
import {
  type Arrived,
  type ClientAuthenticated,
  type GrantChosen,
  type Granted,
  isForUser,
  type Step,
  type StepDependencies,
  type FoundToken,
  subjectOf,
} from '../steps/endpoint.ts'
import { GRANTS } from '../grants/grants.ts'
import { give, tokenIssued, tokenRevoked, took } from '../steps/records.ts'
import { hasValue, inWords, grantedPlace } from '../dependencies/scopes.ts'
import { requireParam } from '../steps/read-form.ts'
import type { DrawnFamily, FamilyRecord } from '../stored/families.ts'
import { findToken } from '../tokens/find-token.ts'
import { issueAccessToken, issueIdToken } from '../tokens/signed-tokens.ts'

export const redeemGrant: Step<GrantChosen, Granted> = (context, dependencies) => {
  const row = GRANTS.get(context.grant)
  if (row === undefined) throw new TypeError(`no such grant: ${context.grant}`)
  return row.redeem(context, dependencies)
}

/**
 * Makes the tokens of any grant, and the answer with them (C6.1.3). Until they are recorded nothing is used up and
 * nothing stored: after a failure the client can ask again with the same code or refresh token (C12.1.4).
 * @throws Fault `invalid_grant` if a rule has revoked the grant since the call began, or if it was used meanwhile;
 *   `audit_unavailable`
 */
export const issueTokens: Step<Granted, Answer> = async (granted, dependencies) => {
  const refresh = refreshOf(granted, dependencies)
  const access = await issueAccessToken(granted, refresh?.family ?? granted.family, dependencies)
  const idToken =
    granted.openid && isForUser(granted) ? await issueIdToken(granted, access.token, dependencies) : undefined
  Object.assign(granted.attempt, { subject: granted.user?.subject, ...grantedPlace(granted.scope) })
  await give(
    tokenIssued(granted, access.principal),
    () => putInForce(granted, refresh, dependencies),
    dependencies,
  )
  dependencies.issuedTokens.prime(access.token, access.principal)
  const body = {
    access_token: access.token,
    token_type: tokenType(dependencies, granted.client, granted.proof?.jkt),
    expires_in: access.lifetime,
    ...scopeAnswer(granted),
    ...(refresh && { refresh_token: refresh.token }),
    ...(idToken !== undefined && { id_token: idToken }),
  }
  return tokenAnswer(body, dependencies, granted.client)
}

/** The granted scope, or the granted part of the requested words with the target as a member of its own (C6.1.3). */
function scopeAnswer({ client, scope, words = scope.text }: Granted): object {
  if (client.answerScope === 'granted') return { scope: scope.text }
  const { target } = scope
  return { scope: inWords(words, scope), ...(target && { target: targetText(target) }) }
}

type AnswerToken = Omit<DrawnFamily, 'record'> & Partial<DrawnFamily>

async function putInForce(
  granted: Granted,
  refresh: AnswerToken | undefined,
  dependencies: StepDependencies,
): Promise<void> {
  const begun = [...(refresh?.record ? [refresh.record] : []), ...partiesOf(granted, dependencies)]
  if (granted.take !== undefined) return granted.take(begun)
  const { store } = dependencies
  for (const record of begun)
    await (isForUser(granted)
      ? createOf(granted.user.subject, record, store)
      : store.create(record.kind, record.key, record))
}

/** The client, if it gets an id_token and is told of the login's end (C6.3.3a). A family's was stored with its first tokens. */
function partiesOf(granted: Granted, { config, logouts }: StepDependencies): readonly NewRecord[] {
  const { client, openid, refresh, sid } = granted
  if (!isForUser(granted) || !openid || refresh.kind === 'continued') return []
  return logouts.partiesOf(client, granted.user.subject, sid, config)
}

function refreshOf(granted: Granted, dependencies: StepDependencies): AnswerToken | undefined {
  const { refresh } = granted
  if (refresh.kind === 'continued') return refresh
  if (refresh.kind === 'none' || !isForUser(granted) || !hasValue(granted.scope, 'offline_access'))
    return undefined
  const { asOf, authTime, client, grant, scope, sid, user } = granted
  const record = {
    client: client.id,
    subject: user.subject,
    scope: scope.text,
    authTime,
    grant,
    asOf,
    ...(sid !== undefined && dependencies.logouts.isNotified(client) && { sid }),
    ...wordsOf(granted),
    ...bindingOf(granted),
  }
  return dependencies.families.draw(record, granted.family)
}

/** For a client that is answered in its own words, also at a refresh. */
const wordsOf = ({ client, words }: Granted): Pick<FamilyRecord, 'words'> =>
  client.answerScope === 'asked' && words !== undefined ? { words } : {}

/** RFC 9449 §5: a public client has nothing but the key to prove who it is; another one may change its keys. */
const bindingOf = ({ client, proof }: Granted): Pick<FamilyRecord, 'jkt' | 'needsProof'> => ({
  ...(proof && { needsProof: true }),
  ...(proof && client.kind === 'public' && { jkt: proof.jkt }),
})

/** Reports every token that is issued or refused to the recorder (C12). */
export const recordTokens =
  (steps: Step<Arrived, Answer>): Step<Arrived, Answer> =>
  async (arrived, dependencies) => {
    const { exchange, attempt } = arrived
    const record = (result: string, fault: Fault | undefined): void =>
      dependencies.recorder.token({ exchange, ...attempt, result, fault })
    try {
      const answer = await steps(arrived, dependencies)
      record('issued', undefined)
      return answer
    } catch (thrown) {
      const fault = toFault(thrown)
      record(fault.row.oauth, fault)
      throw fault
    }
  }

/** RFC 7662 §2.1 asks for authorization, and a public client cannot prove who it is. */
export const requireConfidential: Step<ClientAuthenticated, ClientAuthenticated> = (context) => {
  if (context.client.kind === 'public') throw new Fault('invalid_client', { detail: 'a public client' })
  return context
}

/**
 * Introspects a token (C6.3.3, RFC 7662). If it is not good, or this client may not know it, the answer is
 * `{"active": false}` and nothing more; clients that are configured as resources may ask about everybody's tokens.
 */
export const introspectToken: Step<ClientAuthenticated, Answer> = async (context, dependencies) => {
  const { client, params } = context
  const found = await findToken(requireParam(params, 'token'), dependencies)
  const known = found !== undefined && (client.resource || found.client === client.id)
  return privateAnswer(known ? await describe(found, dependencies) : INACTIVE, dependencies)
}

const INACTIVE = { active: false }

/** A token is not active if its user or client is gone or may hold no tokens, even before a revocation rule says so. */
async function describe(found: FoundToken, dependencies: StepDependencies): Promise<object> {
  const { people, urls } = dependencies
  const user = found.isMachine ? undefined : await orUnavailable(people.findUserBySubject(found.subject))
  const holder = await orUnavailable(people.findClient(found.client))
  const isGone = holder === undefined || (user === undefined && !found.isMachine)
  if (found.spent || isGone) return INACTIVE
  const { client, expiresAt, id, issuedAt, jkt, kind, scope, subject } = found
  return {
    active: true,
    scope,
    client_id: client,
    ...(user && { username: user.username }),
    sub: subject,
    iss: urls.issuer,
    exp: expiresAt,
    // Only an access token has these: a refresh token is for us alone, so it has no audience, and its id is a secret's.
    ...(kind === 'access_token' && {
      token_type: tokenType(dependencies, holder, jkt),
      ...(jkt !== undefined && { cnf: { jkt } }),
      iat: issuedAt,
      aud: urls.api,
      jti: id,
    }),
  }
}

/**
 * Revokes a token (C6.3.3, RFC 7009). An unknown token is answered like a revoked one; one of another client is not
 * (invalid_grant). Success is answered only when the store has kept it (T3.7).
 */
export const revokeToken: Step<ClientAuthenticated, Answer> = async (context, dependencies) => {
  const { attempt, client, exchange, params } = context
  const found = await findToken(requireParam(params, 'token'), dependencies, 'end')
  if (found === undefined) return emptyAnswer()
  if (found.client !== client.id)
    throw new Fault('invalid_grant', { say: 'It was issued to another client.' })
  attempt.subject = subjectOf(found)
  await REVOKE[found.kind](found, dependencies)
  await took(tokenRevoked(exchange, found), dependencies)
  const facts = { kind: found.kind, client: client.id, subject: subjectOf(found) }
  noteCall(exchange, dependencies, 'info', 'token_revoked', facts)
  return emptyAnswer()
}

const BY_CLIENT: RevocationCause = { via: 'revocation by the client' }

/** By kind of token. A refresh token ends its family and its access tokens; an access token is revoked alone. */
const REVOKE: Readonly<
  Record<FoundToken['kind'], (found: FoundToken, dependencies: StepDependencies) => Promise<unknown>>
> = {
  refresh_token: ({ id }, { tokenRevoker }) => tokenRevoker.end({ family: id }, { cause: BY_CLIENT }),
  access_token: ({ id }, { tokenRevoker }) => tokenRevoker.end({ jti: id }, { cause: BY_CLIENT }),
}
