/** What operators are told of scopes (C14.3): held, implied, missing, and the smallest set that would do. */
import { smallestScopes } from '../../config/scopes/catalogue.ts'
import { isTargetValue } from '../../config/scopes/scope-token.ts'
import type { Progress, CheckDescription } from './progress.ts'

/** The row of C4.7. */
export function describeScope({ principal, named, catalogue }: Progress): CheckDescription {
  if (named === undefined)
    return { facts: {}, words: 'Which scope it takes is not known without the action.' }
  const { groups } = named.operation.scopes
  const required = smallestScopes(groups, catalogue)
  if (principal === undefined)
    return { facts: { required }, words: `The action takes ${listed(required)}; nobody is known to call.` }
  const held = [...principal.scopes].filter((value) => !isTargetValue(value))
  const own: ReadonlySet<string> = new Set(held)
  const implied = [...catalogue.close(held)].filter((value) => !own.has(value))
  const missing = smallestScopes(groups, catalogue, own)
  return {
    facts: { held, implied, missing, required },
    words:
      missing?.length === 0
        ? `The token's scope is enough. The action takes ${listed(required)}.`
        : `The token has ${listed(held)}. With ${listed(missing)} it would be enough.`,
  }
}

const listed = (values: readonly string[] | undefined): string =>
  values === undefined
    ? 'a scope value that nothing gives'
    : values.length === 0
      ? 'no scope value'
      : values.join(' and ')
