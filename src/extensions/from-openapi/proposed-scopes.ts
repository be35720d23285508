/** Proposes scopes for operations: those that the description names, or two for each area. */
import { isIdentityScope } from '../../base/config/scopes/catalogue.ts'
import type { JsonObject } from '../../base/http/body/json.ts'
import { type DescribedOperation, lineOf, objectOf, textsOf } from './operations.ts'
import type { DescribedMethod, DescribedService } from '../../operate/hooks/first-configuration.ts'

/** RFC 6749 §3.3. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]+$/
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const WITH_SCOPES: ReadonlySet<unknown> = new Set(['oauth2', 'openIdConnect'])

/** The scopes of a security scheme: OpenAPI 3 has them in its flows, 2.0 in the scheme itself. */
function describedScopes(scheme: JsonObject): JsonObject {
  const flows = Object.values(objectOf(scheme['flows'])).map((flow) => objectOf(objectOf(flow)['scopes']))
  return Object.assign({}, objectOf(scheme['scopes']), ...flows) as JsonObject
}

/** About the service's data: the others are built in, or mean a target. */
const isOwnScope = (name: string): boolean =>
  SCOPE.test(name) && !isIdentityScope(name) && !name.startsWith('target:')

export class ProposedScopes {
  readonly #schemes: JsonObject
  readonly #scopes = new Map<string, DescribedService['scopes'][string]>()
  /** Each way in which an operation that changes data is let in: the scopes that it takes together. */
  readonly #changing: (readonly string[])[] = []
  /** The scopes that operations take that only read. */
  readonly #reading = new Set<string>()

  constructor(schemes: JsonObject) {
    this.#schemes = schemes
  }

  get scopes(): DescribedService['scopes'] {
    return Object.fromEntries(this.#scopes)
  }

  /**
   * Scopes that change nothing. A scope that a change takes together with others, and that reading takes too, counts as
   * reading if one of the others is for changes only: it changes nothing alone.
   */
  get readScopes(): readonly string[] {
    const changing = new Set(
      this.#changing.flatMap((together) => {
        const own = together.filter((name) => !this.#reading.has(name))
        return own.length > 0 ? own : together
      }),
    )
    return [...this.#scopes.keys()].filter((name) => !changing.has(name))
  }

  /** The rule of an operation, and whether the description says one that cannot be said here. */
  ruleOf(operation: DescribedOperation, area: string): { rule: DescribedMethod['scopes']; unsaid: boolean } {
    const alternatives = operation.security
      .map((requirement) => this.#scopesOf(requirement))
      .filter((names) => names.length > 0)
    const [first, ...others] = alternatives
    const reads = READING.has(operation.method)
    const unsaid = others.length > 0 && alternatives.some((names) => names.length > 1)
    if (first === undefined || unsaid) {
      const label = lineOf(operation.tag) ?? area
      return { rule: { any: [this.#proposed(area, label, reads)] }, unsaid }
    }
    const names = [...new Set(alternatives.flat())]
    for (const name of names) this.#take(name)
    if (reads) for (const name of names) this.#reading.add(name)
    else this.#changing.push(...alternatives)
    return { rule: others.length > 0 ? { any: names } : { all: names }, unsaid }
  }

  #scopesOf(requirement: JsonObject): readonly string[] {
    return Object.entries(requirement).flatMap(([scheme, names]) =>
      WITH_SCOPES.has(objectOf(this.#schemes[scheme])['type']) ? textsOf(names).filter(isOwnScope) : [],
    )
  }

  #take(name: string): void {
    if (this.#scopes.has(name)) return
    const texts = Object.values(this.#schemes).map((scheme) => describedScopes(objectOf(scheme))[name])
    const description = texts.map(lineOf).find((text) => text !== undefined)
    this.#scopes.set(name, { description: description ?? name })
  }

  /** @param label the area as people write it: the consent page shows it */
  #proposed(area: string, label: string, reads: boolean): string {
    const [read, maintain] = [`${area}.read`, `${area}.maintain`]
    if (!this.#scopes.has(read)) this.#scopes.set(read, { description: `See ${label}` })
    if (reads) {
      this.#reading.add(read)
      return read
    }
    this.#changing.push([maintain])
    if (!this.#scopes.has(maintain))
      this.#scopes.set(maintain, { description: `See and change ${label}`, implies: [read] })
    return maintain
  }
}
