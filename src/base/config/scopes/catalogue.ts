/** The scope values of a deployment and what they imply (C5.1, C5.2), compiled to closures once. */
export interface ScopeDefinition {
  readonly name: string
  /** For people: consent page and discovery of what a client asks for. */
  readonly description: string
  readonly implies: readonly string[]
}

export interface Catalogue {
  has(value: string): boolean
  get(value: string): ScopeDefinition | undefined
  /** Every value, in the order of the configuration, built-in ones first. */
  readonly values: readonly string[]
  /** The values and everything that they imply, at any depth. */
  close(values: Iterable<string>): ReadonlySet<string>
  /** Every value that has or implies `value`, itself included. */
  satisfiers(value: string): ReadonlySet<string>
}

export const IDENTITY_SCOPES: readonly ScopeDefinition[] = [
  { name: 'openid', description: 'Sign you in', implies: [] },
  { name: 'profile', description: 'Your name and gender', implies: [] },
  { name: 'email', description: 'Your e-mail address', implies: [] },
  { name: 'address', description: 'Your postal address', implies: [] },
  { name: 'phone', description: 'Your phone number', implies: [] },
  { name: 'service_profile', description: 'Your role and business in this service', implies: [] },
  { name: 'offline_access', description: 'Lasting access, also while you are not there', implies: [] },
]

const IDENTITY_NAMES = new Set(IDENTITY_SCOPES.map((scope) => scope.name))

/** Whether a value is about the person rather than about a business's data (C5.1, C6.2.2). */
export const isIdentityScope = (value: string): boolean => IDENTITY_NAMES.has(value)

function closureOf(start: string, definitions: ReadonlyMap<string, ScopeDefinition>): ReadonlySet<string> {
  const reached = new Set([start])
  // A Set may grow while it is iterated: this visits each reachable value once, cycles included.
  for (const value of reached) for (const next of definitions.get(value)?.implies ?? []) reached.add(next)
  return reached
}

export function compileCatalogue(configured: readonly ScopeDefinition[]): Catalogue {
  const definitions = new Map([...IDENTITY_SCOPES, ...configured].map((scope) => [scope.name, scope]))
  const closures = new Map([...definitions.keys()].map((name) => [name, closureOf(name, definitions)]))
  return {
    has: (value) => definitions.has(value),
    get: (value) => definitions.get(value),
    values: [...definitions.keys()],
    close(values) {
      const all = new Set<string>()
      for (const value of values) for (const implied of closures.get(value) ?? []) all.add(implied)
      return all
    },
    satisfiers: (value) =>
      new Set([...closures].filter(([, closure]) => closure.has(value)).map(([name]) => name)),
  }
}

/**
 * The values that allow least, where one of several is enough: those that imply no other of them. Values that imply
 * each other all stay. `fund.read` and `fund.maintain` become `fund.read`.
 */
export const leastOf = (values: ReadonlySet<string>, catalogue: Catalogue): readonly string[] =>
  [...values].filter((value) =>
    [...catalogue.close([value])].every(
      (implied) => !values.has(implied) || catalogue.close([implied]).has(value),
    ),
  )

/** Combinations that are tried before the search settles for what is found step by step. */
const MOST_TRIED = 20_000

/**
 * The fewest scope values that, held together, have one of each group. Of as many, those that imply least. Undefined if
 * nothing can be in a group.
 * @param held values that are held already
 */
export function smallestScopes(
  groups: readonly ReadonlySet<string>[],
  catalogue: Catalogue,
  held: ReadonlySet<string> = new Set(),
): readonly string[] | undefined {
  const open = groups.filter((group) => group.isDisjointFrom(held))
  if (open.some((group) => group.size === 0)) return undefined
  const weight = (value: string): number => catalogue.close([value]).size
  const useful = [...new Set(open.flatMap((group) => [...group]))].sort((a, b) => weight(a) - weight(b))
  return search(open, useful) ?? stepByStep(open, useful)
}

/** Tries one value, then two, and so on. Undefined if that would take too long. */
function search(
  open: readonly ReadonlySet<string>[],
  useful: readonly string[],
): readonly string[] | undefined {
  let tried = 0
  for (let size = 0; size <= open.length; size++)
    for (const chosen of combinations(useful, size)) {
      if ((tried += 1) > MOST_TRIED) return undefined
      if (open.every((group) => chosen.some((value) => group.has(value)))) return chosen
    }
  return undefined
}

/** Combinations of the first values come first. */
function* combinations(values: readonly string[], size: number): Generator<readonly string[]> {
  if (size === 0) yield []
  else
    for (const [at, value] of values.entries())
      for (const rest of combinations(values.slice(at + 1), size - 1)) yield [value, ...rest]
}

/** At each step the value that satisfies most. */
function stepByStep(open: readonly ReadonlySet<string>[], useful: readonly string[]): readonly string[] {
  const chosen: string[] = []
  let left = open
  while (left.length > 0) {
    const gain = (value: string): number => left.filter((group) => group.has(value)).length
    const [first = '', ...others] = useful
    const best = others.reduce((most, value) => (gain(value) > gain(most) ? value : most), first)
    chosen.push(best)
    left = left.filter((group) => !group.has(best))
  }
  return chosen
}
