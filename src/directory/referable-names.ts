import type { Business } from '../contracts/places.ts'
import type { Access, Client } from '../contracts/people.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import { isTargetValue } from '../scopes/scope-token.ts'
import { didYouMean } from '../config/problem-text.ts'
import type { Complaints } from './complaints.ts'

/** What records may refer to. Compiled in this order, each seeing those before it. */
export interface ReferableNames {
  readonly catalogue: Catalogue
  readonly businesses: ReadonlyMap<string, Business>
  readonly roles: ReadonlyMap<string, Access>
  readonly clients: ReadonlyMap<string, Client>
}

/** Suggestions look at every known name; of more than these they would cost too much. */
const FEW = 500

const suggestion = (name: string, among: ReadonlyMap<string, unknown>): string | undefined =>
  among.size > FEW ? undefined : didYouMean(name, among.keys())

/** Tells of a name that stands for nothing. Answers whether it stands for something. */
export function checkKnown(
  what: string,
  name: string,
  among: ReadonlyMap<string, unknown>,
  at: readonly (string | number)[],
  complaints: Complaints,
): boolean {
  if (among.has(name)) return true
  complaints.error(at, `names no ${what} of the directory: "${name}"`, suggestion(name, among))
  return false
}

/** Scope values that somebody may be given: of the catalogue, and no targets. */
export function checkScopes(
  scopes: readonly string[],
  catalogue: Catalogue,
  at: readonly (string | number)[],
  complaints: Complaints,
): void {
  for (const [index, value] of scopes.entries()) {
    if (isTargetValue(value)) complaints.error([...at, index], 'is a target: those follow from `businesses`')
    else if (!catalogue.has(value))
      complaints.error(
        [...at, index],
        `names no scope of the catalogue: "${value}"`,
        didYouMean(value, catalogue.values),
      )
  }
}
