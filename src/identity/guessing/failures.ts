import type { HashOwner } from '../../contracts/people.ts'
import { networkOf } from '../../http/addresses.ts'
import type { IdentityDeps } from '../dependencies.ts'

/** Failures of one key. */
export interface Tally<K> {
  readonly key: K
  readonly failures: number
  /** Milliseconds, Clock.monotonic(), of the last one. */
  readonly last: number
  /** Milliseconds since the epoch of it, for people. */
  readonly at: number
}

interface Entry<K> extends Tally<K> {
  failures: number
  last: number
  at: number
}

export interface FailureTableRules {
  readonly clock: { now(): number; monotonic(): number }
  /** Entries that are kept, each well under a kilobyte. */
  readonly most: number
  /** Milliseconds after the last failure of a key until all of its failures are forgotten. */
  readonly forget: () => number
}

/** Failures are told apart up to this many, where it is to be decided who is forgotten. */
const LEVELS = 64

/**
 * Counts failures by key, for as long as they mean something. Only who failed has an entry. Where the table is full,
 * dependencies is made by those that would be forgotten anyway, then by those that have failed least, the oldest first: whoever
 * makes up many keys pushes out the many, and not the one that has failed often.
 */
export class FailureTable<K> {
  readonly #rules: FailureTableRules
  readonly #entries = new Map<string, Entry<K>>()
  /** By failures, one to LEVELS and more; in each, the one that failed longest ago is first. */
  readonly #levels = Array.from({ length: LEVELS }, () => new Map<string, Entry<K>>())

  constructor(rules: FailureTableRules) {
    this.#rules = rules
  }

  get size(): number {
    return this.#entries.size
  }

  /** Undefined for a key without failures. */
  find(id: string): Tally<K> | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || !this.#isStale(entry)) return entry
    this.forget(id)
    return undefined
  }

  /** Counts one failure. @param key what the table tells of the entry, if it is new */
  fail(id: string, key: K): Tally<K> {
    const entry = (this.find(id) as Entry<K> | undefined) ?? this.#make(id, key)
    this.#levelOf(entry).delete(id)
    entry.failures += 1
    entry.last = this.#rules.clock.monotonic()
    entry.at = this.#rules.clock.now()
    this.#levelOf(entry).set(id, entry)
    return entry
  }

  /** True if there was something to forget. */
  forget(id: string): boolean {
    const entry = this.#entries.get(id)
    if (entry === undefined) return false
    this.#levelOf(entry).delete(id)
    return this.#entries.delete(id) && !this.#isStale(entry)
  }

  /** Forgets all that fit; answers how many. */
  forgetWhere(fits: (key: K) => boolean): number {
    const ids = [...this.#entries].filter(([, { key }]) => fits(key)).map(([id]) => id)
    return ids.filter((id) => this.forget(id)).length
  }

  list(): readonly Tally<K>[] {
    return [...this.#entries.values()].filter((entry) => !this.#isStale(entry))
  }

  #make(id: string, key: K): Entry<K> {
    if (this.#entries.size >= this.#rules.most) this.#makeRoom()
    const entry: Entry<K> = { key, failures: 0, last: -Infinity, at: 0 }
    this.#entries.set(id, entry)
    return entry
  }

  #makeRoom(): void {
    let least: string | undefined
    for (const level of this.#levels) {
      const [oldest] = level
      if (oldest === undefined) continue
      if (this.#isStale(oldest[1])) return void this.forget(oldest[0])
      least ??= oldest[0]
    }
    if (least !== undefined) this.forget(least)
  }

  #isStale({ last }: Entry<K>): boolean {
    return this.#rules.clock.monotonic() - last >= this.#rules.forget()
  }

  #levelOf({ failures }: Entry<K>): Map<string, Entry<K>> {
    const level = this.#levels[Math.min(Math.max(failures, 1), LEVELS) - 1]
    if (level === undefined) throw new RangeError('no such level')
    return level
  }
}

/** Wrong secrets in a row from which on a client id is doubted where it was sent from. */
const DOUBTED_FROM = 5
/** Pairs of client id and network, in each process. */
const REMEMBERED = 20_000
/** Characters of an id that count: ids are the guesser's to choose, and so is their length. */
const LONGEST_ID = 128

/**
 * Wrong client secrets, by id and network. Nobody is slowed down or refused by them (a client's id is no secret, and
 * anybody can send wrong ones): they decide in which queue a secret waits to be hashed, so that wrong ones in bulk
 * keep nobody else from logging in (C6.3.5). Counted for ids that nobody has as well (T3.9). Each process counts alone.
 */
export interface ClientFailures {
  hashOwner(id: string, address: string): HashOwner
  /** The secret was wrong, or right: then what was counted is forgotten. */
  count(id: string, address: string, right: boolean): void
}

export function openClientFailures({
  clock,
  config,
}: Pick<IdentityDeps, 'clock' | 'config'>): ClientFailures {
  const failures = new FailureTable<undefined>({
    clock,
    most: REMEMBERED,
    forget: () => config.guessing.forget,
  })
  const nameOf = (id: string, address: string): string =>
    JSON.stringify([id.slice(0, LONGEST_ID), networkOf(address)])
  return {
    hashOwner(id, address) {
      const name = nameOf(id, address)
      return { name, doubted: (failures.find(name)?.failures ?? 0) >= DOUBTED_FROM }
    },
    count(id, address, right) {
      const name = nameOf(id, address)
      if (right) failures.forget(name)
      else failures.fail(name, undefined)
    },
  }
}
