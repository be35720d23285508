/** JSON Merge Patch (RFC 7396). */

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value after a patch: `null` removes a member, objects are merged, everything else replaces. RFC 7396 §2. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const before = isObject(target) ? target : {}
  const kept = Object.entries(before).filter(([name]) => !Object.hasOwn(patch, name))
  const changed = Object.entries(patch)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      const old = Object.hasOwn(before, name) ? before[name] : undefined
      return [name, applyMergePatch(old, value)] as const
    })
  return Object.fromEntries([...kept, ...changed])
}
