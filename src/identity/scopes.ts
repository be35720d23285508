import type { Client, User } from '../contracts/people.ts'
import type { Places } from '../contracts/places.ts'
import { Fault } from '../kernel/faults.ts'
import { isIdentityScope, type Catalogue } from '../scopes/catalogue.ts'
import {
  businessTarget,
  type Code,
  isScopeValue,
  isTargetValue,
  joinScope,
  parseTarget,
  readScopeValue,
  type ScopeText,
  type ScopeValue,
  type Target,
} from '../scopes/scope-token.ts'

/** A request's scope: values in its order, each once, the target among them at its place. */
export interface RequestedScope {
  readonly values: readonly ScopeValue[]
  readonly target: Target | undefined
}

/** What was kept of it (C5.5); becomes the token's scope. */
export interface GrantedScope extends RequestedScope {
  readonly text: ScopeText
}

export const hasValue = ({ values }: RequestedScope, value: string): boolean =>
  values.some((each) => each === value)

const OFFLINE = 'offline_access'
/** "Let the user choose" (C5.4). */
const CHOOSE = 'target:b'
const refuse = (say: string): Fault => new Fault('invalid_scope', { say })

/** A value told back in a description: only if it is short and plain. */
const shown = (value: string): string => (/^[\w.:/~-]{1,60}$/.test(value) ? value : 'A value')

/**
 * Reads a `scope` (C5.4, C5.5): runs of spaces divide, identical values are merged, at most one target. In the code
 * flow it may be the bare `target:b`, which stays among the values until the user has chosen (C6.2.2).
 * @throws Fault invalid_scope for what can be no scope value, a value outside the catalogue, a malformed target, two
 *   targets
 */
export function parseScope(text: string, catalogue: Catalogue, mayChoose = false): RequestedScope {
  const values = [...new Set(split(text))].map(requireValue)
  for (const value of values) if (!mayChoose || value !== CHOOSE) requireKnown(value, catalogue)
  const [target, second] = values.filter(isTargetValue)
  if (second !== undefined) throw refuse('A token has one target at most.')
  return { values, target: target === undefined ? undefined : parseTarget(target) }
}

const split = (text: string): readonly string[] => text.split(' ').filter((value) => value !== '')

function requireValue(text: string): ScopeValue {
  const value = readScopeValue(text)
  if (value === undefined) throw refuse('It holds a character that no scope value may have.')
  return value
}

function requireKnown(value: string, catalogue: Catalogue): void {
  if (isTargetValue(value) ? parseTarget(value) !== undefined : catalogue.has(value)) return
  if (value === CHOOSE) throw refuse('target:b without a business is for the authorization code flow only.')
  throw refuse(`${shown(value)} is not a scope value of this service.`)
}

/**
 * C5.4, C5.5: what the client may have of it. Without the refresh grant a client has no use for `offline_access`, so
 * it counts as not allowed.
 * @throws Fault invalid_scope for a target that is not the client's, an unknown fund, or where no value is left
 */
export function limitToClient(
  requested: RequestedScope,
  client: Client,
  catalogue: Catalogue,
  places: Places,
): RequestedScope {
  requireClientTarget(requested.target, client, places)
  const allowed = catalogue.close(client.scopes)
  const refreshes = client.grants.includes('refresh_token')
  return keep(requested, (value) => allowed.has(value) && (value !== OFFLINE || refreshes))
}

function requireClientTarget(target: Target | undefined, client: Client, places: Places): void {
  if (target !== undefined && !isOpenTo(client, target, places)) throw otherTarget()
}

/** Whether the business is one of the client's, and it and the fund exist. */
export function isOpenTo(client: Client, target: Target, places: Places): boolean {
  const business = client.businesses.includes(target.business)
    ? places.findBusiness(target.business)
    : undefined
  if (business === undefined) return false
  const { funds } = business
  return target.level === 'business' || funds === 'any' || funds.has(target.fund)
}

const otherTarget = (): Fault => refuse('The target is none that can be granted here.')

/**
 * C5.4, C5.5: what the user may have of it, at the target's business. Scopes about the person are the person's own;
 * a data scope without a target is granted, since it opens no business.
 * @throws Fault invalid_scope for a target that is not the user's, or where no value is left
 */
export function limitToUser(requested: RequestedScope, user: User, catalogue: Catalogue): GrantedScope {
  const { target } = requested
  const access = target === undefined ? undefined : user.access.get(target.business)
  if (target !== undefined && access === undefined) throw otherTarget()
  const allowed = access === undefined ? undefined : catalogue.close(access.scopes)
  const kept = keep(requested, (value) => isIdentityScope(value) || (allowed?.has(value) ?? true))
  return { ...kept, text: joinScope(kept.values) }
}

/**
 * C6.2.2: whether the user chooses a business: for a bare `target:b`, or where a data scope or `service_profile` is
 * asked without a target.
 */
export const leavesChoice = ({ target, values }: RequestedScope): boolean =>
  target === undefined &&
  values.some((value) => value === CHOOSE || value === 'service_profile' || !isIdentityScope(value))

/** Whether nothing but a choice will do. */
export const demandsChoice = (scope: RequestedScope): boolean => hasValue(scope, CHOOSE)

/** The scope with the chosen business as its target, in the place of the bare one if there is one. */
export function chooseBusiness({ values }: RequestedScope, business: Code): RequestedScope {
  const chosen = businessTarget(business)
  const replaced = values.map((value) => (value === CHOOSE ? chosen : value))
  return {
    values: replaced.includes(chosen) ? replaced : [...values, chosen],
    target: { level: 'business', business },
  }
}

/** Drops what is not allowed, whole: never replaced, never expanded (C5.5). */
function keep({ values, target }: RequestedScope, allowed: (value: string) => boolean): RequestedScope {
  const kept = values.filter((value) => isTargetValue(value) || allowed(value))
  if (kept.every(isTargetValue)) throw refuse('None of the values asked for can be granted.')
  return { values: kept, target }
}

/**
 * A scope that was granted earlier, as the store has it: the catalogue may have changed since. What can be no scope
 * value is left out, as if it had been withdrawn: earlier versions granted such targets (T3.11).
 */
export function readGrantedScope(text: string): GrantedScope {
  const values = split(text).filter(isScopeValue)
  const target = values.find(isTargetValue)
  return {
    values,
    text: joinScope(values),
    target: target === undefined ? undefined : parseTarget(target),
  }
}

/**
 * C6.1.7, RFC 6749 §6: the same or narrower. What the granted values imply is narrower than they are; the target stays,
 * whether or not it is repeated.
 * @throws Fault invalid_scope for a value or a target that was not granted
 */
export function narrowScope(
  asked: RequestedScope,
  granted: RequestedScope,
  catalogue: Catalogue,
): RequestedScope {
  const { target } = granted
  const own = granted.values.filter(isTargetValue)
  const data = asked.values.filter((value) => !isTargetValue(value))
  const allowed = catalogue.close(granted.values)
  if (!data.every((value) => allowed.has(value))) throw refuse('It holds a value that was not granted.')
  const repeated = asked.values.filter(isTargetValue)
  if (!repeated.every((value) => own.includes(value)))
    throw refuse('The target is not the one that was granted.')
  return { values: repeated.length > 0 ? asked.values : [...data, ...own], target }
}
