import type { Claims } from '../contracts/keys.ts'

/** Reads one claim; undefined if the token does not have it. */
export type ClaimReader = (claims: Claims) => unknown

const isObject = (value: unknown): value is Claims =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Reads the claim that a configuration names (C11.2): `scope`, `realm_access.roles`, `https://example.com/business`.
 *
 * A dot divides names, unless it is part of one. So the whole text is tried as the name of a member first; if there is
 * none, the longest beginning of the text (up to a dot) that is the name of a member is taken, and the rest is looked
 * for inside that member. Nothing else is tried, so one token has one reading.
 */
export const claimReader = (path: string): ClaimReader =>
  path.includes('.') ? (claims) => valueAt(claims, path) : (claims) => member(claims, path)

const member = (object: Claims, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

function valueAt(object: unknown, path: string): unknown {
  if (!isObject(object)) return undefined
  if (Object.hasOwn(object, path)) return object[path]
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot)
    if (Object.hasOwn(object, name)) return valueAt(object[name], path.slice(dot + 1))
  }
  return undefined
}
