import type { JsonObject, JsonValue } from '../http/json-value.ts'
import { Fault } from '../kernel/faults.ts'

/** A module's code is trusted, but its mistakes must not take the process with them: a circle ends here. */
const DEPTH = 200
const NODES = 1_000_000

const TOLD_LENGTH = 200

/** What a module did wrong, for the log; the client gets a 500. */
export const broken = (detail: string): Fault =>
  new Fault('upstream_broken', { detail: `the module ${detail.slice(0, TOLD_LENGTH)}` })

/**
 * A copy of what a module answered as a value that JSON can say: undefined members are left out, `toJSON` is heeded, as
 * JSON.stringify does. What that writes as null or leaves out behind one's back (NaN, functions, maps) is refused.
 * @throws Fault upstream_broken, naming the place for the log
 */
export const jsonValueOf = (given: unknown): JsonValue => new Copier().copy(given, 'value', 0)

class Copier {
  #nodes = 0

  copy(given: unknown, at: string, depth: number): JsonValue {
    if (++this.#nodes > NODES) throw broken(`answered more than ${NODES} values`)
    if (depth > DEPTH) throw broken(`answered a circle, or more than ${DEPTH} levels`)
    if (given === null || typeof given === 'string' || typeof given === 'boolean') return given
    if (typeof given === 'number') return numberAt(given, at)
    if (typeof given !== 'object') throw broken(`answered a ${typeof given} at ${at}`)
    if (JSON.isRawJSON(given)) return given
    if ('toJSON' in given && typeof given.toJSON === 'function')
      return this.copy((given.toJSON as () => unknown)(), at, depth + 1)
    if (Array.isArray(given)) return given.map((item, index) => this.copy(item, `${at}[${index}]`, depth + 1))
    return this.#object(given, at, depth)
  }

  #object(given: object, at: string, depth: number): JsonObject {
    const prototype: unknown = Object.getPrototypeOf(given)
    if (prototype !== null && prototype !== Object.prototype)
      throw broken(`answered a ${given.constructor.name} at ${at}; expected plain objects`)
    const copied = Object.create(null) as JsonObject
    for (const [name, member] of Object.entries(given))
      if (member !== undefined) copied[name] = this.copy(member, `${at}.${name}`, depth + 1)
    return copied
  }
}

function numberAt(given: number, at: string): number {
  if (Number.isFinite(given)) return given
  throw broken(`answered ${given} at ${at}; JSON has no word for it`)
}

/** A value for a module: numbers are JavaScript's, whatever their literals were. */
export function plainValue(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (JSON.isRawJSON(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(plainValue)
  const copied = Object.create(null) as JsonObject
  for (const [name, member] of Object.entries(value)) copied[name] = plainValue(member)
  return copied
}
