/** The deployment's scope values, as configured (C5.1). */
import { list, mapOf, section, text, type Static } from '../schema.ts'
import type { Problems } from '../problems.ts'
import { reportUnknownName } from '../problem-text.ts'
import { compileCatalogue, isIdentityScope, type Catalogue, type ScopeDefinition } from './catalogue.ts'
import { isTargetValue, SCOPE_TOKEN_PATTERN } from './scope-token.ts'

export const scopesSchema = mapOf(
  section({
    description: text({ description: 'What it allows. The consent page shows this text.' }),
    implies: list(text({ description: 'A scope value.' }), {
      default: [],
      unique: true,
      description: 'Scope values that it includes, with everything that they imply.',
    }),
  }),
  {
    keys: SCOPE_TOKEN_PATTERN,
    expectedKeys: 'printable ASCII without spaces, quotes and backslashes',
    default: {},
    description: 'The scope values of your API, by name.',
  },
)

export type ScopesConfig = Static<typeof scopesSchema>

function checkName(name: string, problems: Problems): void {
  if (isIdentityScope(name))
    problems.error(['scopes', name], 'is built in; its meaning is fixed', 'leave it out')
  if (isTargetValue(name))
    problems.error(['scopes', name], 'would be read as a target; expected another name')
}

function checkImplied(scope: ScopeDefinition, known: ReadonlySet<string>, problems: Problems): void {
  for (const [index, implied] of scope.implies.entries()) {
    const path = ['scopes', scope.name, 'implies', index]
    if (isIdentityScope(implied)) problems.error(path, 'is about the person; data scopes cannot imply it')
    else if (!known.has(implied)) reportUnknownName(problems, path, SCOPE, implied, known)
  }
}

/** How a problem calls a scope value. */
export const SCOPE = 'scope of the catalogue'

type Implied = ReadonlyMap<string, readonly string[]>

/** The shortest way by which a value implies itself: `a`, `b`, `a`. Undefined if there is none. */
function wayBack(start: string, implied: Implied): readonly string[] | undefined {
  const ways = [[start]]
  const seen = new Set<string>()
  // The list grows while it is walked: each value is reached once, by its shortest way.
  for (const way of ways)
    for (const next of implied.get(way.at(-1) ?? start) ?? []) {
      if (next === start) return [...way, next]
      if (!seen.has(next)) ways.push([...way, next])
      seen.add(next)
    }
  return undefined
}

/** Values that imply each other all allow the same, and the weaker one more than its description says. */
function checkCycles(definitions: readonly ScopeDefinition[], problems: Problems): void {
  const implied = new Map(definitions.map(({ name, implies }) => [name, implies]))
  const reported = new Set<string>()
  for (const { name, implies } of definitions) {
    const way = reported.has(name) ? undefined : wayBack(name, implied)
    if (way === undefined) continue
    for (const value of way) reported.add(value)
    const at = ['scopes', name, 'implies', implies.indexOf(way[1] ?? name)]
    problems.error(at, `makes it imply itself: ${way.join(' → ')}`, 'leave out the one that allows less')
  }
}

/** Compiles the catalogue; reports built-in names, names that read as targets, implied values that don't exist, and cycles. */
export function compileScopes(config: ScopesConfig, problems: Problems): Catalogue {
  const definitions = Object.entries(config).map(([name, scope]) => ({ name, ...scope }))
  const known = new Set(definitions.map((scope) => scope.name))
  for (const scope of definitions) {
    checkName(scope.name, problems)
    checkImplied(scope, known, problems)
  }
  checkCycles(definitions, problems)
  return compileCatalogue(definitions)
}
