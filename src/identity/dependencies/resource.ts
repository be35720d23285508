/** The parameter `resource` (C6.1.3a, RFC 8707): the API as a whole, or the part of it that a token's target opens. */
import {
  isTargetValue,
  parseTarget,
  readScopeValue,
  type Target,
  targetText,
} from '../../base/config/scopes/scope-token.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Places } from '../../base/contracts/people/places.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { chooseBusiness, CHOOSE, isOpenTo, type RequestedScope } from './scopes.ts'

const refuse = (say: string): Fault => new Fault('invalid_target', { say })

const UNKNOWN =
  'The resource must be the address of this API, or of a business or fund of it that can be granted here.'

/** Undefined where there is none, or where it is the API as a whole. @throws Fault `invalid_target` */
function targetOf(resource: string | undefined, api: string): Target | undefined {
  if (resource === undefined || resource === api || resource === `${api}/`) return undefined
  const path = `${api}/api/1.0/`
  const target = resource.startsWith(path) ? parseTarget(`target:${resource.slice(path.length)}`) : undefined
  if (target === undefined) throw refuse(UNKNOWN)
  return target
}

interface ResourceParts {
  readonly places: Places
  readonly urls: { readonly api: string }
}

/**
 * The requested scope with the target that `resource` names. It takes the place of a bare `target:b`. Rejects with Fault
 * `invalid_target` for another resource than those of this API, for one that is not the client's, and for one that comes
 * with another target.
 */
export async function withResource(
  requested: RequestedScope,
  resource: string | undefined,
  client: Client,
  { places, urls }: ResourceParts,
): Promise<RequestedScope> {
  const target = targetOf(resource, urls.api)
  if (target === undefined) return requested
  if (!(await isOpenTo(client, target, places))) throw refuse(UNKNOWN)
  const { values } = requested
  if (target.level === 'business' && values.some((value) => value === CHOOSE))
    return chooseBusiness(requested, target.business)
  const value = readScopeValue(`target:${targetText(target)}`)
  if (value === undefined || values.some((each) => isTargetValue(each) && each !== value))
    throw refuse('The resource is not the target of the scope.')
  return { values: [...new Set([...values, value])], target }
}

/** The `resource` that comes with a code or a refresh token can only repeat the target granted. @throws Fault `invalid_target` */
export function requireResource(
  resource: string | undefined,
  granted: RequestedScope,
  { urls }: Pick<ResourceParts, 'urls'>,
): void {
  const target = targetOf(resource, urls.api)
  const own = granted.target && targetText(granted.target)
  if (target !== undefined && targetText(target) !== own)
    throw refuse('The resource is not the target that was granted.')
}
