/**
 * The scope values of a deployment and what they imply (C5.1, C5.2). Implication is compiled to closures once;
 * nothing is computed per call.
 */
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
