import type { Client, User } from '../../base/contracts/people/people.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { noteCall, orUnavailable } from '../dependencies/dependencies.ts'
import { flow, type GrantChosen, type Granted, type Step, type StepDependencies } from '../steps/endpoint.ts'
import { replayed } from '../steps/records.ts'
import { requireResource } from '../dependencies/resource.ts'
import {
  hasValue,
  isOpenTo,
  limitToClient,
  limitToUser,
  meaningOwnTarget,
  narrowScope,
  parseScope,
  readGrantedScope,
  type RequestedScope,
} from '../dependencies/scopes.ts'
import { requireParam, requireParams } from '../steps/read-form.ts'
import type { FoundFamily } from '../stored/families.ts'

/** The scope that the request asks for; undefined where it has none, and the family's is meant. */
interface ScopeRead extends GrantChosen {
  readonly asked: RequestedScope | undefined
}

interface FamilyFound extends ScopeRead {
  readonly token: string
  readonly found: FoundFamily
  readonly granted: RequestedScope
}

interface UserFound extends FamilyFound {
  readonly user: User
}

interface ScopeNarrowed extends UserFound {
  readonly scope: Granted['scope']
}

const refuse = (detail: string): Fault => new Fault('invalid_grant', { detail })

/** Checks syntax, catalogue and the client's allowance before the token is looked at (C6.1.0). */
const readScope: Step<GrantChosen, ScopeRead> = async (context, { catalogue, places }) => {
  const text = context.params.get('scope')?.trim()
  if (text === undefined || text === '') return { ...context, asked: undefined }
  const asked = parseScope(text, catalogue, true)
  await limitToClient(asked, context.client, catalogue, places)
  return { ...context, asked }
}

/** The token is known, this client's, and not replayed. Another client's attempt changes nothing (C6.1.7). */
const findFamily: Step<ScopeRead, FamilyFound> = async (context, dependencies) => {
  const token = requireParam(context.params, 'refresh_token')
  const { families } = dependencies
  // A token that stays the same is written nowhere, so what this process remembers would never be compared.
  const found = await (keepsTokens(context.client) ? families.find(token) : families.findToUse(token))
  if (found === undefined) throw refuse('unknown, expired or ended')
  if (found.record.client !== context.client.id) throw refuse('of another client')
  context.attempt.subject = found.record.subject
  requireKey(found, context, dependencies)
  if (found.state === 'replayed') throw await endReplayed(found, context, dependencies)
  return { ...context, token, found, granted: readGrantedScope(found.record.scope) }
}

/** A call without the key changes nothing, so a thief cannot end the login (RFC 9449 §5). */
function requireKey(
  { record: { jkt, needsProof } }: FoundFamily,
  { proof }: GrantChosen,
  { security }: StepDependencies,
): void {
  if (needsProof === true && proof === undefined) throw security.proofMissing()
  if (jkt !== undefined && jkt !== proof?.jkt) throw refuse('a proof of another key')
}

/** The token has two holders, and nobody knows which of them has stolen it: both lose it (C6.1.7). */
async function endReplayed(
  { id, record }: FoundFamily,
  context: GrantChosen,
  dependencies: StepDependencies,
): Promise<Fault> {
  const cause = { via: 'second use of a refresh token' }
  const ended = await dependencies.tokenRevoker.end({ family: id }, { cause })
  const { client, subject } = record
  await replayed({ event: 'token.replayed', family: id, subject, ended }, context, dependencies)
  dependencies.recorder.replay?.('refresh_token')
  noteCall(context.exchange, dependencies, 'warn', 'refresh_token_replayed', { family: id, client, subject })
  return refuse('replayed: its family is revoked')
}

function mayGoOn(user: User, { client, found, granted: { target } }: FamilyFound): boolean {
  if (target !== undefined && !user.access.has(target.business)) return false
  return found.record.grant !== 'password' || user.customers.includes(client.id)
}

/** The user is still there, and the family's business still theirs and the client's. */
const findUser: Step<FamilyFound, UserFound> = async (context, { people, places }) => {
  const { client, found, granted } = context
  const user = await orUnavailable(people.findUserBySubject(found.record.subject))
  if (user === undefined || !mayGoOn(user, context)) throw refuse('its user is gone or may no longer')
  if (granted.target !== undefined && !(await isOpenTo(client, granted.target, places)))
    throw refuse('its business or fund is gone, or no longer the client’s')
  return { ...context, user }
}

/** The family's scope or less, and of it what client and user may have today (C5.5). */
const limitScope: Step<UserFound, ScopeNarrowed> = async (context, dependencies) => {
  const { asked, client, granted, params, user } = context
  const { catalogue, places } = dependencies
  requireResource(params.get('resource'), granted, dependencies)
  const wanted =
    asked === undefined ? granted : narrowScope(meaningOwnTarget(asked, granted), granted, catalogue)
  const scope = limitToUser(await limitToClient(wanted, client, catalogue, places), user, catalogue)
  return { ...context, scope }
}

const keepsTokens = ({ limits }: Client): boolean => limits?.keepsRefreshTokens === true

/** The token is used last of all (`take`), so that a request that fails otherwise uses nothing up. */
const planRotation: Step<ScopeNarrowed, Granted> = (context, dependencies) => {
  const { client, found, granted, token } = context
  const { id: family, record, state, successor } = found
  const words = context.params.get('scope') ?? record.words
  const plan = {
    ...context,
    authTime: record.authTime,
    openid: hasValue(granted, 'openid'),
    nonce: undefined,
    sid: record.sid,
    ...(words !== undefined && { words }),
  }
  // One that was followed by another, before the client got its profile, is followed by it still.
  if (keepsTokens(client) && state === 'fresh')
    return { ...plan, refresh: { kind: 'continued', family, token } }
  return {
    ...plan,
    refresh: { kind: 'continued', family, token: successor },
    take: () => rotate(context, dependencies),
  }
}

async function rotate(context: ScopeNarrowed, dependencies: StepDependencies): Promise<void> {
  const { found, token } = context
  const result = await dependencies.families.rotate(token, found)
  if (result === 'ended') throw refuse('ended meanwhile')
  if (result === 'replayed') throw await endReplayed(found, context, dependencies)
}

/** The grant `refresh_token` (C6.1.7), in the order of C6.1.0. */
export const redeemRefreshToken: Step<GrantChosen, Granted> = flow(
  requireParams<GrantChosen>('refresh_token'),
  readScope,
  findFamily,
  findUser,
  limitScope,
  planRotation,
)
