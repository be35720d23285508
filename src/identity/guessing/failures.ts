import type { HashOwner } from '../../base/contracts/people/people.ts'
import { networkOf } from '../../base/http/head/addresses.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'

export interface Tally<K> {
  readonly key: K
  readonly failures: number
  /** Time of the last failure: milliseconds of Clock.monotonic(). */
  readonly last: number
  /** The same time in milliseconds since the epoch, for people. */
  readonly at: number
}

interface Entry<K> extends Tally<K> {
  failures: number
  last: number
  at: number
}

interface FailureTableRules {
  readonly clock: { now(): number; monotonic(): number }
  /** The largest number of entries, each well under a kilobyte. */
  readonly most: number
  /** How long after the last failure of a key all of its failures are forgotten, in milliseconds. */
  readonly forget: () => number
}

/** A full table drops entries by level. This many failures and more are one level. */
const LEVELS = 64

/**
 * Counts failures by key. Only a key with failures has an entry. A full table first drops an entry whose time is over, or
 * one with the fewest failures, the oldest first. So an attacker who invents many keys displaces those keys, and
 * not a key that has failed often.
 */
export class FailureTable<K> {
  readonly #rules: FailureTableRules
  readonly #entries = new Map<string, Entry<K>>()
  /** Entries by number of failures, from 1 to LEVELS and more. In each level the oldest failure is first. */
  readonly #levels = Array.from({ length: LEVELS }, () => new Map<string, Entry<K>>())

  constructor(rules: FailureTableRules) {
    this.#rules = rules
  }

  get size(): number {
    return this.#entries.size
  }

  find(id: string): Tally<K> | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || !this.#isStale(entry)) return entry
    this.forget(id)
    return undefined
  }

  /** Counts one failure. `key` is kept with a new entry. */
  fail(id: string, key: K): Tally<K> {
    const entry = (this.find(id) as Entry<K> | undefined) ?? this.#make(id, key)
    this.#levelOf(entry).delete(id)
    entry.failures += 1
    entry.last = this.#rules.clock.monotonic()
    entry.at = this.#rules.clock.now()
    this.#levelOf(entry).set(id, entry)
    return entry
  }

  forget(id: string): boolean {
    const entry = this.#entries.get(id)
    if (entry === undefined) return false
    this.#levelOf(entry).delete(id)
    return this.#entries.delete(id) && !this.#isStale(entry)
  }

  forgetWhere(fits: (key: K) => boolean): number {
    const ids = [...this.#entries].filter(([, { key }]) => fits(key)).map(([id]) => id)
    return ids.filter((id) => this.forget(id)).length
  }

  countWhere(fits: (tally: Tally<K>) => boolean): number {
    let count = 0
    for (const entry of this.#entries.values()) if (!this.#isStale(entry) && fits(entry)) count += 1
    return count
  }

  list(): readonly Tally<K>[] {
    return [...this.#entries.values()].filter((entry) => !this.#isStale(entry))
  }

  #make(id: string, key: K): Entry<K> {
    if (this.#entries.size >= this.#rules.most) this.#dropOne()
    const entry: Entry<K> = { key, failures: 0, last: -Infinity, at: 0 }
    this.#entries.set(id, entry)
    return entry
  }

  #dropOne(): void {
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

/** After this many wrong secrets in a row, a client id is doubted in the network that they came from. */
const DOUBTED_FROM = 5
/** Most pairs of client id and network, in each process. */
const REMEMBERED = 20_000
/** How many characters of an id count, because an attacker may send long ids. */
const LONGEST_ID = 128

/**
 * Counts wrong client secrets by id and network. They delay and refuse nothing, because a client id is public and anybody
 * can send wrong secrets for it. They only decide in which queue a secret waits to be hashed, so that many wrong secrets
 * do not keep others from logging in (C6.3.5). Unknown ids are counted too (T3.9). Each process counts for itself.
 */
export interface ClientFailures {
  hashOwner(id: string, address: string): HashOwner
  /** Counts a wrong secret. A right one resets the count. */
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
