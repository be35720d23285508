/**
 * What must be ended because one directory replaces another (C6.3.6). The only place that decides it: for the editors of the
 * store, for a reload, and for a start with another configuration.
 *
 * | What is less | What ends |
 * | --- | --- |
 * | a person or client is removed | all that they hold, consents too |
 * | a person or client is disabled or locked; a password is another | all that they hold |
 * | a business is removed | all that was issued for it, consents too |
 * | a business is disabled | all that was issued for it |
 * | a client or user is no longer at a business; a user no longer a client's customer | all that was issued for both |
 * | a fund is removed or disabled | the access tokens for it |
 * | a role is removed or disabled | the access tokens that were issued by it |
 * | a role, a client, or a user's role at a business gives fewer scope values | the access tokens that have one of those |
 * | a scope value is removed, or implies less | the access tokens that have the value that is gone |
 *
 * Where only access tokens end, families of refresh tokens stay: a refresh gives what is allowed then, or is refused.
 */
import type { RevokedTokens } from '../contracts/tokens.ts'
import type { BusinessHoldings, ClientHoldings, Holdings, UserHoldings } from './holdings.ts'

/** Something that must be ended. */
export interface Loss {
  readonly tokens: RevokedTokens
  /** Whether consents end too: after a removal, the id may be given to somebody else one day. */
  readonly consents: boolean
}

const losing = (tokens: RevokedTokens, consents = false): Loss => ({ tokens, consents })

/** Two directories, and how what they say is compared. */
interface Compared {
  readonly before: Holdings
  readonly after: Holdings
  /** Scope values that nobody has as before. A rule ends them for everybody, so nobody's own loss names them. */
  readonly ofAll: ReadonlySet<string>
}

const without = (before: Iterable<string>, after: { includes(value: string): boolean }): string[] =>
  [...before].filter((value) => !after.includes(value))

const closed = (values: readonly string[], { scopes }: Holdings): ReadonlySet<string> =>
  new Set(values.flatMap((value) => [...(scopes.get(value) ?? [])]))

/** The scope values that were given by these, and are not given by those. */
function fewer(
  had: readonly string[],
  has: readonly string[],
  { before, after, ofAll }: Compared,
): readonly string[] {
  const kept = closed(has, after)
  return [...closed(had, before)].filter((scope) => !kept.has(scope) && !ofAll.has(scope))
}

/** None where the second directory has no scope values: a sidecar's tokens are given by others. */
function scopesLostByAll(before: Holdings, { scopes }: Holdings): ReadonlySet<string> {
  if (scopes.size === 0) return new Set()
  const lost = ([value, implied]: readonly [string, ReadonlySet<string>]): string[] =>
    [...implied].filter((each) => scopes.get(value)?.has(each) !== true)
  return new Set([...before.scopes].flatMap(lost))
}

function lostByBusiness(
  business: string,
  before: BusinessHoldings,
  after: BusinessHoldings | undefined,
): readonly Loss[] {
  if (after === undefined) return [losing({ business }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold) return [losing({ business })]
  // Of `any`, nobody knows which funds there were: one that is not listed now is refused at each call (C4.8).
  const { funds } = after
  if (before.funds === 'any' || funds === 'any') return []
  return [...before.funds].filter((fund) => !funds.has(fund)).map((fund) => losing({ business, fund }))
}

function lostByRole(role: string, had: readonly string[], compared: Compared): readonly Loss[] {
  const has = compared.after.roles.get(role)
  if (has === undefined) return [losing({ role })]
  return fewer(had, has, compared).map((scope) => losing({ role, scope }))
}

function lostByClient(client: string, before: ClientHoldings, compared: Compared): readonly Loss[] {
  const after = compared.after.clients.get(client)
  if (after === undefined) return [losing({ client }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold) return [losing({ client })]
  return [
    ...without(before.businesses, after.businesses).map((business) => losing({ client, business })),
    ...fewer(before.scopes, after.scopes, compared).map((scope) => losing({ client, scope })),
  ]
}

/** At one business, where the user had a role. A role that gives less than before is ended by its own rule. */
function lostAtBusiness(
  { subject, business }: { readonly subject: string; readonly business: string },
  [role, next]: readonly [before: string, after: string | undefined],
  compared: Compared,
): readonly Loss[] {
  if (next === undefined) return [losing({ subject, business })]
  const had = compared.before.roles.get(role)
  if (role === next || had === undefined) return []
  const has = compared.after.roles.get(next)
  if (has === undefined) return [losing({ subject, business })]
  return fewer(had, has, compared).map((scope) => losing({ subject, business, scope }))
}

function lostByUser(subject: string, before: UserHoldings, compared: Compared): readonly Loss[] {
  const after = compared.after.users.get(subject)
  if (after === undefined) return [losing({ subject }, true)]
  // If name and password both changed, the subject was given to somebody else.
  const another = before.username !== after.username && before.password !== after.password
  if (another) return [losing({ subject }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold || before.password !== after.password) return [losing({ subject })]
  return [
    ...Object.entries(before.access).flatMap(([business, role]) =>
      lostAtBusiness({ subject, business }, [role, after.access[business]], compared),
    ),
    ...without(before.customers, after.customers).map((client) => losing({ client, subject })),
  ]
}

/** What must be ended. New entries lose nothing, and a change that takes nothing away ends nothing. */
export function lossesBetween(before: Holdings, after: Holdings): readonly Loss[] {
  const ofAll = scopesLostByAll(before, after)
  const compared = { before, after, ofAll }
  return [
    ...[...ofAll].map((scope) => losing({ scope })),
    ...[...before.businesses].flatMap(([code, each]) =>
      lostByBusiness(code, each, after.businesses.get(code)),
    ),
    ...[...before.roles].flatMap(([name, scopes]) => lostByRole(name, scopes, compared)),
    ...[...before.clients].flatMap(([id, client]) => lostByClient(id, client, compared)),
    ...[...before.users].flatMap(([subject, user]) => lostByUser(subject, user, compared)),
  ]
}
