import type { Client, User } from '../../base/contracts/people/people.ts'
import type { Places } from '../../base/contracts/people/places.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { isIdentityScope, type Catalogue } from '../../base/config/scopes/catalogue.ts'
import {
  businessTarget,
  type Code,
  isScopeValue,
  isTargetValue,
  joinScope,
  parseTarget,
  readCode,
  readScopeValue,
  type ScopeText,
  type ScopeValue,
  type Target,
} from '../../base/config/scopes/scope-token.ts'

/** A requested scope. `values` are in the order of the request, each once, the target among them. */
export interface RequestedScope {
  readonly values: readonly ScopeValue[]
  readonly target: Target | undefined
}

/** The granted part of a requested scope (C5.5). It becomes the token's scope. */
export interface GrantedScope extends RequestedScope {
  readonly text: ScopeText
}

export const grantedPlace = ({
  target,
}: GrantedScope): {
  readonly business: string | undefined
  readonly fund: string | undefined
} => ({
  business: target?.business,
  fund: target?.level === 'fund' ? target.fund : undefined,
})

export const hasValue = ({ values }: RequestedScope, value: string): boolean =>
  values.some((each) => each === value)

const OFFLINE = 'offline_access'
/** The user is to choose the business (C5.4). */
export const CHOOSE = 'target:b'
const refuse = (say: string): Fault => new Fault('invalid_scope', { say })

/** The value as an error description names it: only if it is short and has no unusual characters. */
const shown = (value: string): string => (/^[\w.:/~-]{1,60}$/.test(value) ? value : 'A value')

/**
 * Reads a `scope` (C5.4, C5.5). One or more spaces separate values, and a repeated value counts once.
 * @param mayChoose true in the code flow: the target may then be the bare `target:b`, which stays among the values until
 *   the user has chosen a business (C6.2.2)
 * @throws Fault `invalid_scope` for a malformed value, a value outside the catalogue, a malformed target, or two targets
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
 * The part of the scope that the client may have (C5.4, C5.5). Rejects with Fault `invalid_scope` for a target that is not
 * the client's, for an unknown fund, or if no value is left; with `identity_unavailable` if the store cannot be reached.
 */
export async function limitToClient(
  requested: RequestedScope,
  client: Client,
  catalogue: Catalogue,
  places: Places,
): Promise<RequestedScope> {
  const { target } = requested
  if (target !== undefined && !(await isOpenTo(client, target, places)))
    throw otherTarget('the client may not have this target, or there is no such business or fund')
  return keepOfClient(requested, client, catalogue)
}

/**
 * The values that the client may have, wherever the target is. A client without the refresh grant may not have
 * `offline_access`, because it could not use it.
 * @throws Fault `invalid_scope` if no value is left
 */
export function keepOfClient(
  requested: RequestedScope,
  client: Client,
  catalogue: Catalogue,
): RequestedScope {
  const allowed = catalogue.close(client.scopes)
  const refreshes = client.grants.includes('refresh_token')
  return keep(requested, (value) => allowed.has(value) && (value !== OFFLINE || refreshes))
}

/** Rejects with Fault `identity_unavailable`. Of a business that is not the client's nothing is asked. */
export async function isOpenTo(client: Client, target: Target, places: Places): Promise<boolean> {
  if (!client.businesses.includes(target.business)) return false
  const fund = target.level === 'fund' ? target.fund : undefined
  return places.exists(target.business, fund) ?? places.look(target.business, fund)
}

/** The answer does not say which of the two: the client learns nothing of other businesses. `detail`: for operators. */
const otherTarget = (detail: string): Fault =>
  new Fault('invalid_scope', { say: 'The target is none that can be granted here.', detail })

/**
 * The part of the scope that the user may have at the target's business (C5.4, C5.5). Scope values about the person are
 * always allowed. A data scope without a target is allowed too, because it gives access to no business.
 * @throws Fault `invalid_scope` for a target that is not the user's, or if no value is left
 */
export function limitToUser(requested: RequestedScope, user: User, catalogue: Catalogue): GrantedScope {
  const { target } = requested
  const access = target === undefined ? undefined : user.access.get(target.business)
  if (target !== undefined && access === undefined)
    throw otherTarget('the user may do nothing at this business')
  const allowed = access === undefined ? undefined : catalogue.close(access.scopes)
  return granted(keep(requested, (value) => isIdentityScope(value) || (allowed?.has(value) ?? true)))
}

const granted = (scope: RequestedScope): GrantedScope => ({ ...scope, text: joinScope(scope.values) })

/**
 * What a machine is granted (C6.1.5a): nothing about a person, and never without a target. Without one in the request it
 * is the client's only business. Rejects as `limitToClient` does, and with Fault `invalid_scope` for a target that is
 * missing.
 */
export async function limitToMachine(
  requested: RequestedScope,
  client: Client,
  catalogue: Catalogue,
  places: Places,
): Promise<GrantedScope> {
  const { target, values } = requested
  const ofData = { target, values: values.filter((value) => !isIdentityScope(value)) }
  const aimed = target === undefined ? chooseBusiness(ofData, onlyBusiness(client)) : ofData
  return granted(await limitToClient(aimed, client, catalogue, places))
}

/** @throws Fault `invalid_scope` */
function onlyBusiness({ businesses: [only, ...others] }: Client): Code {
  const code = only === undefined ? undefined : readCode(only)
  if (code === undefined || others.length > 0)
    throw refuse('The target is missing: say which business the token is for.')
  return code
}

/** Whether the user may choose a business (C6.2.2). */
export const leavesChoice = ({ target, values }: RequestedScope): boolean =>
  target === undefined &&
  values.some((value) => value === CHOOSE || value === 'service_profile' || !isIdentityScope(value))

/** Whether the request opens nothing without a business. */
export const demandsChoice = ({ target, values }: RequestedScope): boolean =>
  target === undefined && values.some((value) => value === CHOOSE || !isIdentityScope(value))

/** The scope with the chosen business as its target. It replaces a bare `target:b`. */
export function chooseBusiness({ values }: RequestedScope, business: Code): RequestedScope {
  const chosen = businessTarget(business)
  const replaced = values.map((value) => (value === CHOOSE ? chosen : value))
  return {
    values: replaced.includes(chosen) ? replaced : [...values, chosen],
    target: { level: 'business', business },
  }
}

/**
 * Drops the values that are not allowed. A value is never replaced by values that it implies (C5.5).
 * @throws Fault `invalid_scope` if no value is left
 */
function keep({ values, target }: RequestedScope, allowed: (value: string) => boolean): RequestedScope {
  const kept = values.filter((value) => isTargetValue(value) || allowed(value))
  if (kept.every(isTargetValue)) throw refuse('None of the values asked for can be granted.')
  return { values: kept, target }
}

/** The part of a scope that was granted, in the words that asked for it: a bare `target:b` means the target. */
export const inWords = (words: string, { target, values }: GrantedScope): string => {
  const granted: ReadonlySet<string> = new Set(values)
  return [...new Set(split(words))]
    .filter((value) => (value === CHOOSE ? target !== undefined : granted.has(value)))
    .join(' ')
}

/** The scope of a refresh request whose bare `target:b` means the target of the family (C5.4). */
export const meaningOwnTarget = (
  { target, values }: RequestedScope,
  granted: RequestedScope,
): RequestedScope => {
  const own = granted.values.find(isTargetValue)
  return { target, values: values.map((value) => (value === CHOOSE && own !== undefined ? own : value)) }
}

/** Values that left the catalogue are kept; malformed ones, which earlier versions granted, are not (T3.11). */
export function readGrantedScope(text: string): GrantedScope {
  const values = split(text).filter(isScopeValue)
  return { values, text: joinScope(values), target: firstTarget(values) }
}

export const readGrantedTarget = (text: string): Target | undefined =>
  firstTarget(split(text).filter(isTargetValue))

function firstTarget(values: readonly string[]): Target | undefined {
  const target = values.find((value) => isTargetValue(value) && isScopeValue(value))
  return target === undefined ? undefined : parseTarget(target)
}

/**
 * The scope of a refresh request: the granted one or a narrower one (C6.1.7, RFC 6749 §6). Values that the granted ones
 * imply may be requested. The target stays, whether or not the request repeats it.
 * @throws Fault `invalid_scope` for a value or a target that was not granted
 */
export function narrowScope(
  requested: RequestedScope,
  granted: RequestedScope,
  catalogue: Catalogue,
): RequestedScope {
  const { target } = granted
  const own = granted.values.filter(isTargetValue)
  const data = requested.values.filter((value) => !isTargetValue(value))
  const allowed = catalogue.close(granted.values)
  if (!data.every((value) => allowed.has(value))) throw refuse('It holds a value that was not granted.')
  const repeated = requested.values.filter(isTargetValue)
  if (!repeated.every((value) => own.includes(value)))
    throw refuse('The target is not the one that was granted.')
  return { values: repeated.length > 0 ? requested.values : [...data, ...own], target }
}
