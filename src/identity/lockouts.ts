import { setTimeout as delay } from 'node:timers/promises'
import type {
  AttemptGate,
  GuessingKey,
  Lockout,
  LockoutFilter,
  Lockouts,
  Turn,
} from '../contracts/lockouts.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import type { GuessingConfig } from './config.ts'

/** Resolves after so many milliseconds. */
export type Timer = (ms: number) => Promise<void>

export const systemTimer: Timer = (ms) => delay(ms, undefined, { ref: false })

/** Failures of one key or network. */
interface Tally {
  failures: number
  /** Clock.monotonic() of the last one. */
  last: number
  /** Clock.now() of it, for people. */
  at: number
}

interface Lane extends Tally {
  readonly key: GuessingKey
  waiting: number
  /** Settles when the attempt before is over. */
  tail: Promise<unknown>
}

/** Keys and networks remembered; beyond, the longest unused are forgotten. */
const REMEMBERED = 20_000

/** What so many failures cost: nothing at first, then doubling from `delay` up to `longest`. Milliseconds. */
export const delayAfter = (
  failures: number,
  { free, delay, longest }: { free: number; delay: number; longest: number },
): number => (failures < free ? 0 : Math.min(longest, delay * 2 ** (failures - free)))

/** The lockouts in the memory of the process that owns them. */
export class LocalLockouts implements AttemptGate, Lockouts {
  #rules: GuessingConfig
  readonly #clock: Clock
  readonly #timer: Timer
  readonly #lanes = new Map<string, Lane>()
  readonly #tallies = new Map<string, Tally>()

  constructor(rules: GuessingConfig, clock: Clock, timer: Timer = systemTimer) {
    this.#rules = rules
    this.#clock = clock
    this.#timer = timer
  }

  /** Other rules, from now on; what was counted stays counted. */
  configure(rules: GuessingConfig): void {
    this.#rules = rules
  }

  async enter(sent: GuessingKey): Promise<Turn> {
    const key = { ...sent, network: networkOf(sent.network) }
    const lane = recall(this.#lanes, textOf(key), () => laneOf(key), isIdle)
    this.#refuseCrowd(lane)
    const over = await queue(lane)
    const wait = lane.last + delayAfter(this.#fresh(lane).failures, this.#rules.attempts) - this.#now()
    if (wait > 0) await this.#timer(wait)
    let ended = false
    return {
      end: (right) => {
        const hold = ended ? 0 : this.#count(lane, right)
        ended = true
        over()
        return Promise.resolve(hold)
      },
    }
  }

  list(): readonly Lockout[] {
    const { attempts } = this.#rules
    return [...this.#lanes.values()]
      .map((lane) => {
        const { failures, at } = this.#fresh(lane)
        return { ...lane.key, failures, delay: delayAfter(failures, attempts), at }
      })
      .filter((lockout) => lockout.delay > 0)
      .sort((a, b) => b.at - a.at)
  }

  clear({ user, client, network }: LockoutFilter): Promise<number> {
    const from = network === undefined ? undefined : networkOf(network)
    const fits = (key: GuessingKey): boolean =>
      (user ?? key.user) === key.user &&
      (client ?? key.client) === key.client &&
      (from ?? key.network) === key.network
    const lanes = [...this.#lanes.values()].filter(({ key }) => fits(key))
    const failed = lanes.filter((lane) => this.#fresh(lane).failures > 0)
    // A network's failures are everybody's in it: they go only where no one user or client is meant.
    const whole = user === undefined && client === undefined
    const tallies = [...this.#tallies].filter(([name]) => whole && (from ?? name) === name)
    for (const tally of [...failed, ...tallies.map(([, tally]) => tally)]) tally.failures = 0
    return Promise.resolve(failed.length)
  }

  #now(): number {
    return this.#clock.monotonic()
  }

  #fresh<T extends Tally>(tally: T): T {
    if (this.#now() - tally.last >= this.#rules.forget) tally.failures = 0
    return tally
  }

  #refuseCrowd({ failures, waiting }: Lane): void {
    if (waiting < this.#rules.waiting) return
    throw failures < this.#rules.attempts.free
      ? new Fault('identity_unavailable', { detail: 'too many logins of one user at once', retryAfter: 1 })
      : new Fault('invalid_grant', { detail: 'too many attempts are waiting' })
  }

  #count(lane: Lane, right: boolean | undefined): number {
    if (right === undefined) return 0
    if (right) {
      lane.failures = 0
      return 0
    }
    this.#fail(lane)
    const tally = this.#fresh(recall(this.#tallies, lane.key.network, unfailed))
    this.#fail(tally)
    return delayAfter(tally.failures, this.#rules.networks)
  }

  #fail(tally: Tally): void {
    tally.failures += 1
    tally.last = this.#now()
    tally.at = this.#clock.now()
  }
}

const unfailed = (): Tally => ({ failures: 0, last: -Infinity, at: 0 })
const laneOf = (key: GuessingKey): Lane => ({
  key,
  ...unfailed(),
  waiting: 0,
  tail: Promise.resolve(),
})
const isIdle = ({ waiting }: Lane): boolean => waiting === 0
const textOf = ({ user, client, network }: GuessingKey): string => JSON.stringify([user, client, network])

/** Waits for the attempts of the lane that came before; answers how to let the next one in. */
async function queue(lane: Lane): Promise<() => void> {
  const before = lane.tail
  const { promise, resolve } = Promise.withResolvers<undefined>()
  lane.tail = promise
  lane.waiting += 1
  await before
  return () => {
    lane.waiting -= 1
    resolve(undefined)
  }
}

/** The entry of a key, made the youngest; an old one that is not in use makes room for a new one. */
function recall<T>(
  map: Map<string, T>,
  key: string,
  make: () => T,
  idle: (entry: T) => boolean = () => true,
): T {
  const entry = map.get(key) ?? make()
  map.delete(key)
  const [oldest] = map
  if (map.size >= REMEMBERED && oldest !== undefined && idle(oldest[1])) map.delete(oldest[0])
  map.set(key, entry)
  return entry
}

/** An IPv6 site is one network: its last 64 bits are the guesser's to choose. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter((group) => group !== '')
  const after = tail?.split(':').filter((group) => group !== '') ?? []
  const gap = tail === undefined ? [] : Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...gap, ...after].slice(0, 4).join(':')
}
