/** The deployment's scope values, as configured (C5.1). */
import { list, mapOf, section, text, type Static } from '../config/schema.ts'
import type { Report } from '../config/report.ts'
import { didYouMean } from '../config/problem-text.ts'
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

function checkName(name: string, report: Report): void {
  if (isIdentityScope(name))
    report.error(['scopes', name], 'is built in; its meaning is fixed', 'leave it out')
  if (isTargetValue(name)) report.error(['scopes', name], 'would be read as a target; expected another name')
}

function checkImplied(scope: ScopeDefinition, known: ReadonlySet<string>, report: Report): void {
  for (const [index, implied] of scope.implies.entries()) {
    const path = ['scopes', scope.name, 'implies', index]
    if (isIdentityScope(implied)) report.error(path, 'is about the person; data scopes cannot imply it')
    else if (!known.has(implied))
      report.error(path, `names no scope of the catalogue: "${implied}"`, didYouMean(implied, known))
  }
}

/** Compiles the catalogue; reports built-in names, names that read as targets, and implied values that don't exist. */
export function compileScopes(config: ScopesConfig, report: Report): Catalogue {
  const definitions = Object.entries(config).map(([name, scope]) => ({ name, ...scope }))
  const known = new Set(definitions.map((scope) => scope.name))
  for (const scope of definitions) {
    checkName(scope.name, report)
    checkImplied(scope, known, report)
  }
  return compileCatalogue(definitions)
}
