/**
 * Finds the names of an object's members that some service may read as wanted ones (C8.7). The readings of names are told by
 * `member-names.ts`, slowly. Here a name is followed along the letters of the wanted ones, and given up at the first
 * letter that none of them has: a hostile body has thousands of names, each of which is dear to decode and to normalise.
 */
import { Fault } from '../../kernel/faults.ts'
import { codesOf, folded, HIDDEN } from './fold.ts'
import { DecodedWalk, COMBINING_MARK, NameFollower, newStep, PairsFollower } from './follow-names.ts'
import { ASCII, memberReadings } from './member-names.ts'

/** Readings with these are looked for slowly: they divide names, or make other ones of them. */
const DIVIDES = /[\]?%\0]/

/** Names that are looked for, in many objects of many calls. */
export class WantedNames {
  readonly #nameOf: (key: string) => string
  readonly #readings: ReadonlyMap<string, readonly string[]>
  readonly #wanted: ReadonlySet<string>
  readonly #start = newStep()
  /** Whether they are followed at all. */
  readonly #isFollowed: boolean
  /** Whether they are of ASCII: then no mark belongs to them, and what was found is so. */
  readonly #isPlain: boolean

  /** @param nameOf a key as it is compared */
  constructor(wanted: readonly string[], nameOf: (key: string) => string) {
    this.#nameOf = nameOf
    this.#readings = new Map(wanted.map((name) => [name, memberReadings(nameOf(name))]))
    this.#wanted = new Set([...this.#readings.values()].flat())
    const all = [...this.#wanted]
    this.#isFollowed = !all.some((reading) => DIVIDES.test(reading))
    this.#isPlain = all.every((reading) => ASCII.test(reading))
    for (const reading of all) this.#lead(reading)
  }

  #lead(reading: string): void {
    let here = this.#start
    for (const code of codesOf(reading).flatMap((code) => folded(code).codes)) {
      if (code === HIDDEN || COMBINING_MARK.test(String.fromCodePoint(code))) continue
      const next = here.next.get(code) ?? newStep()
      here.next.set(code, next)
      here = next
    }
    here.reading = reading
  }

  /** The readings of a wanted name. @throws RangeError for any other name, because it would never be found */
  readingsOf(name: string): readonly string[] {
    const readings = this.#readings.get(name)
    if (readings === undefined) throw new RangeError('a name is looked for that is none of the wanted ones')
    return readings
  }

  /**
   * The wanted readings that a key has.
   * @param beforeSlow called for a key that is likely to be one of these, and can be told by all its readings alone
   */
  readingsIn(key: string, beforeSlow: () => void = () => undefined): readonly string[] {
    const name = this.#nameOf(key)
    if (this.#isFollowed) {
      const follower = new NameFollower(this.#start, this.#isPlain)
      const { found } = follower
      const walk = new DecodedWalk(follower, this.#isPlain)
      walk.follow(name)
      if (!walk.isLost && (found.length === 0 || (walk.isSure && this.#isPlain))) return found
      beforeSlow()
    }
    return memberReadings(name).filter((reading) => this.#wanted.has(reading))
  }

  /** Whether a pair, or a value of one, may hold a wanted name, however it is decoded and divided. */
  mayBeIn(text: string, kind: 'pair' | 'value'): boolean {
    // A percent sign in a name is one for pairs, which are not decoded to the end.
    if (!this.#isFollowed || [...this.#readings.keys()].some((name) => name.includes('%'))) return true
    const follower = new PairsFollower(this.#start, this.#isPlain, kind === 'pair')
    const walk = new DecodedWalk(follower, this.#isPlain)
    walk.follow(text)
    return walk.isLost || follower.hasFound
  }
}

/** Names of one body that are told slowly. Such a name costs as much as a hundred others, and no honest body has two. */
const MOST_SLOW = 100

/**
 * The names of objects of one call that are like wanted ones. Each object is read once, however many names are looked for in
 * it, unless it is changed by others.
 */
export class LikeNames {
  readonly #wanted: WantedNames
  readonly #objects = new Map<object, Map<string, Set<string>>>()
  #slow = 0

  constructor(wanted: WantedNames) {
    this.#wanted = wanted
  }

  /** The keys of an object that may be read as a name, in their order. @throws Fault `unsendable_argument` */
  like(object: Readonly<Record<string, unknown>>, name: string): readonly string[] {
    const keys = this.#keysOf(object)
    const found = new Set<string>()
    if (Object.hasOwn(object, name)) found.add(name)
    for (const reading of this.#wanted.readingsOf(name))
      for (const key of keys.get(reading) ?? []) if (Object.hasOwn(object, key)) found.add(key)
    return [...found]
  }

  /** To be told of a key that an object gets. Throws as `like` does. */
  add(object: Readonly<Record<string, unknown>>, key: string): void {
    this.#note(this.#keysOf(object), key)
  }

  #keysOf(object: Readonly<Record<string, unknown>>): Map<string, Set<string>> {
    const known = this.#objects.get(object)
    if (known !== undefined) return known
    const keys = new Map<string, Set<string>>()
    for (const key in object) this.#note(keys, key)
    this.#objects.set(object, keys)
    return keys
  }

  #note(keys: Map<string, Set<string>>, key: string): void {
    for (const reading of this.#wanted.readingsIn(key, () => this.#countSlow())) {
      const same = keys.get(reading)
      if (same === undefined) keys.set(reading, new Set([key]))
      else same.add(key)
    }
  }

  #countSlow(): void {
    this.#slow += 1
    if (this.#slow > MOST_SLOW)
      throw new Fault('unsendable_argument', {
        say: `The body: more than ${MOST_SLOW} names of members are other spellings of one that only this service sets or checks. Leave them out.`,
      })
  }
}
