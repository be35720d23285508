/** What records name of each other, and of the catalogue. */
import { reportUnknownName } from '../../../base/config/problem-text.ts'
import type { Catalogue } from '../../../base/config/scopes/catalogue.ts'
import { SCOPE } from '../../../base/config/scopes/schema.ts'
import { isTargetValue } from '../../../base/config/scopes/scope-token.ts'
import type { Client } from '../../../base/contracts/people/people.ts'
import type { RecordProblems } from './read-records.ts'

/** The names that records may refer to. They are compiled in this order, so each can refer to those before it. */
export interface ReferableNames {
  readonly catalogue: Catalogue
  readonly businesses: ReadonlyMap<string, unknown>
  readonly roles: ReadonlyMap<string, unknown>
  readonly clients: ReadonlyMap<string, Client>
}

/** Whether the name is among them. If not, it is reported. */
export function checkReferences(
  what: string,
  name: string,
  among: ReadonlyMap<string, unknown>,
  at: readonly (string | number)[],
  problems: RecordProblems,
): boolean {
  if (among.has(name)) return true
  reportUnknownName(problems, at, `${what} of the directory`, name, among.keys())
  return false
}

/** Reports scope values that nobody can be given: targets, and those that the catalogue does not have. */
export function checkScopes(
  scopes: readonly string[],
  catalogue: Catalogue,
  at: readonly (string | number)[],
  problems: RecordProblems,
): void {
  for (const [index, value] of scopes.entries()) {
    if (isTargetValue(value)) problems.error([...at, index], 'is a target: those follow from `businesses`')
    else if (!catalogue.has(value))
      reportUnknownName(problems, [...at, index], SCOPE, value, catalogue.values)
  }
}
