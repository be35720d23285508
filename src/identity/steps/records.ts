/**
 * The entries of the audit trail about tokens and people (C12.3). One function makes the entry of each event; `give`, `took` and
 * `refused` record it as C12.1.4 says. No entry holds a token, a code, a password or the value of a cookie.
 */
import { isTargetValue } from '../../base/config/scopes/scope-token.ts'
import type { AuditActor, AuditEntry, AuditGrant, AuditObject } from '../../base/contracts/records/audit.ts'
import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { Ended } from '../../base/contracts/records/tokens.ts'
import type { AuditEvent } from '../../base/kernel/audit-events.ts'
import { type Fault, toFault } from '../../base/kernel/faults.ts'
import type { Consent } from '../stored/consents.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import {
  type Arrived,
  type Attempt,
  type Granted,
  type Step,
  type FoundToken,
  subjectOf,
} from './endpoint.ts'
import { type GrantedScope, grantedPlace } from '../dependencies/scopes.ts'

type Recording = Pick<IdentityDeps, 'audit'>

/**
 * Records what is about to be given, and then gives it: a failure of the trail leaves nothing in the store. If giving
 * fails, a record with the fault follows, whose `intent` is the first one's `seq`.
 * @throws Fault `audit_unavailable`, and everything that `carryOut` throws
 */
export async function give<T>(
  entry: AuditEntry,
  carryOut: () => Promise<T>,
  { audit }: Recording,
): Promise<T> {
  const intent = await audit.require(entry)
  try {
    return await carryOut()
  } catch (thrown) {
    await audit.settle({ ...entry, ...failureOf(toFault(thrown)), intent })
    throw thrown
  }
}

/** Records what was taken away. Never rejects. */
export const took = async (entry: AuditEntry, { audit }: Recording): Promise<void> => {
  await audit.keep(entry)
}

type Acting = Pick<Arrived, 'attempt' | 'exchange'>

/** Records that something was refused; where there are many, it only counts (C12.1.5). */
export function refused(event: AuditEvent, acting: Acting, fault: Fault, dependencies: Recording): void {
  const { attempt, exchange } = acting
  const { grant, typed } = attempt
  const entry = (): AuditEntry =>
    entryOf(event, exchange, {
      ...failureOf(fault),
      ...partiesOf(attempt),
      ...(grant !== 'none' && { grant: { grant } }),
      personal: { 'actor.claimed': typed },
    })
  refuse({ event, reason: fault.code }, acting, entry, dependencies)
}

/** Browsers are counted by their network, also those with a session: their users share no other source. */
const refuse = (
  { event, reason }: { readonly event: AuditEvent; readonly reason: string },
  { attempt, exchange }: Acting,
  entry: () => AuditEntry,
  { audit }: Recording,
): void => {
  const client = attempt.proven === 'client' ? attempt.client : undefined
  audit.refuse({ event, reason, address: exchange.clientAddress, client }, entry)
}

/** Records what these steps refuse, also what is sent to the client by a redirect. */
export const recordRefusals =
  (event: AuditEvent, steps: Step<Arrived, Answer>): Step<Arrived, Answer> =>
  async (arrived, dependencies) => {
    try {
      const answer = await steps(arrived, dependencies)
      const { redirectedFault } = arrived.attempt
      if (redirectedFault !== undefined) refused(event, arrived, redirectedFault, dependencies)
      return answer
    } catch (thrown) {
      const fault = toFault(thrown)
      refused(event, arrived, fault, dependencies)
      throw fault
    }
  }

/** A fault of ours is a failure; any other is a refusal. */
const failureOf = ({ code, status }: Fault): Pick<AuditEntry, 'outcome' | 'reason'> => ({
  outcome: status >= 500 ? 'failed' : 'refused',
  reason: code,
})

/** The actor, if it has proven who it is, and the others whom the entry is about. */
function partiesOf({ client, proven, subject }: Attempt): Pick<AuditEntry, 'actor' | 'on'> {
  if (proven === 'client') return { actor: { kind: 'client', client }, on: about({ subject }) }
  if (proven === 'user') return { actor: { kind: 'user', subject }, on: about({ client }) }
  return { actor: { kind: 'anonymous' }, on: about({ client, subject }) }
}

/** Undefined where nothing is known. */
const about = (parties: Pick<AuditObject, 'client' | 'subject'>): AuditObject | undefined =>
  parties.client === undefined && parties.subject === undefined ? undefined : parties

const entryOf = (
  event: AuditEvent,
  { clientAddress, id }: Exchange,
  facts: Pick<AuditEntry, 'actor'> & Partial<AuditEntry>,
): AuditEntry => ({
  event,
  outcome: 'success',
  requestId: id,
  ...facts,
  personal: { 'actor.address': clientAddress, ...facts.personal },
})

const userOf = (subject: string, client?: string): AuditActor => ({ kind: 'user', subject, client })

const grantOf = ({ text, values }: GrantedScope, grant?: string): AuditGrant => ({
  grant,
  scope: text,
  target: values.find(isTargetValue),
})

// Tokens

/** By every grant; a refresh names the family that the token continues. */
export const tokenIssued = (
  { client, exchange, grant, method, proof, scope, user }: Granted,
  { family, tokenId }: Principal,
): AuditEntry =>
  entryOf('token.issued', exchange, {
    actor: user === undefined ? { kind: 'client', client: client.id } : userOf(user.subject, client.id),
    on: { kind: 'token', id: tokenId, family, ...grantedPlace(scope) },
    grant: { ...grantOf(scope, grant), method, jkt: proof?.jkt },
  })

/** An access token by its id, or a refresh token by its family. */
export const tokenRevoked = (exchange: Exchange, found: FoundToken): AuditEntry => {
  const { client, id, kind } = found
  const subject = subjectOf(found)
  return entryOf('token.revoked', exchange, {
    actor: { kind: 'client', client },
    on: { kind: 'token', ...(kind === 'access_token' ? { id } : { family: id }), subject },
  })
}

/** A token of a family, or the code that began it, was used again. */
interface Replay {
  readonly event: 'token.replayed' | 'code.replayed'
  readonly family: string
  readonly subject: string
  /** What the rule for the family has ended; undefined if there was nothing to end. */
  readonly ended: Ended | undefined
}

/** Records a replay: what it has ended; or, where that was nothing, a refusal. */
export async function replayed(replay: Replay, acting: Acting, dependencies: Recording): Promise<void> {
  const { ended, event } = replay
  if (ended !== undefined) await took(replayOf(replay, acting), dependencies)
  else refuse({ event, reason: 'invalid_grant' }, acting, () => replayOf(replay, acting), dependencies)
}

function replayOf({ ended, event, family, subject }: Replay, { attempt, exchange }: Acting): AuditEntry {
  const { actor, on } = partiesOf({ ...attempt, subject })
  const kind = event === 'code.replayed' ? 'code' : 'token'
  return entryOf(event, exchange, {
    outcome: 'refused',
    reason: 'invalid_grant',
    actor,
    on: { kind, family, ...on },
    change: ended && { rule: { family }, ended: { ...ended } },
  })
}

interface Authorizing {
  readonly exchange: Exchange
  readonly subject: string
  readonly client: string
  readonly scope: GrantedScope
}

/** By the family of the tokens that it gives. */
export const codeIssued = ({ client, exchange, scope, subject }: Authorizing, family: string): AuditEntry =>
  entryOf('code.issued', exchange, {
    actor: userOf(subject),
    on: { kind: 'code', family, client, ...grantedPlace(scope) },
    grant: grantOf(scope, 'authorization_code'),
  })

// People

/** One login in one browser: `key` is that of the record in the store, a hash of the cookie. */
interface BrowserLogin {
  readonly subject: string
  readonly key: string
  /** The client that asked for it, which has proven nothing. */
  readonly client?: string | undefined
}

const sessionEntry = (
  event: AuditEvent,
  exchange: Exchange,
  { client, key, subject }: BrowserLogin,
  facts: Pick<AuditEntry, 'change'> = {},
): AuditEntry =>
  entryOf(event, exchange, { actor: userOf(subject), on: { kind: 'session', id: key, client }, ...facts })

/** @param way how the person has proven who they are */
export const loginSucceeded = (exchange: Exchange, login: BrowserLogin, way: string): AuditEntry =>
  sessionEntry('login.succeeded', exchange, login, { change: { way } })

export const loginEnded = (exchange: Exchange, login: BrowserLogin): AuditEntry =>
  sessionEntry('login.ended', exchange, login)

/** By which a person has set another password: an operator's link, or the account page. */
export type PasswordWay = 'link' | 'account'

interface SetByOwner {
  readonly username: string
  readonly subject: string
  readonly way: PasswordWay
}

/** As that of an operator, by the owner: who has a link has proven nothing else. */
export const passwordSet = (exchange: Exchange, { subject, username, way }: SetByOwner): AuditEntry =>
  entryOf('user.password_set', exchange, {
    actor: way === 'account' ? userOf(subject) : { kind: 'anonymous' },
    on: { kind: 'user', subject },
    change: { way },
    personal: { 'on.id': username },
  })

/** The user ended it at another browser, or we did because the user is gone or may not log in any more. */
export const sessionRevoked = (
  exchange: Exchange,
  { key, subject }: BrowserLogin,
  by: 'user' | 'service',
): AuditEntry =>
  entryOf('session.revoked', exchange, {
    actor: by === 'user' ? userOf(subject) : { kind: 'service' },
    on: { kind: 'session', id: key, subject },
  })

export const consentGiven = ({ client, exchange, scope, subject }: Authorizing): AuditEntry =>
  entryOf('consent.given', exchange, {
    actor: userOf(subject),
    on: { kind: 'consent', client, business: scope.target?.business },
    grant: grantOf(scope),
  })

export const consentWithdrawn = (
  exchange: Exchange,
  { business, client, scopes, subject }: Consent,
  families: number,
): AuditEntry =>
  entryOf('consent.withdrawn', exchange, {
    actor: userOf(subject),
    on: { kind: 'consent', client, business: business ?? undefined },
    change: { scopes: [...scopes], families },
  })
