import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { Fault, type FaultCode } from '../../../base/kernel/faults.ts'

type Line = 'ordinary' | 'doubtful'

interface Waiter {
  readonly begin: () => void
  /** Undefined: no owner, so the limit per owner does not apply. */
  readonly owner: string | undefined
}

/**
 * Lets a few jobs run at once and a limited number wait. Otherwise hashes would take all threads of the pool that
 * token checks, DNS and files need too (C6.3.5).
 *
 * There are two lines, so that jobs that will probably fail can't hold up the others. The ordinary line goes first.
 * At most half of the jobs that run at once come from the doubtful line (but one, if only one may run). One owner
 * has at most half of the places in the ordinary line.
 */
class HashQueue {
  /** Jobs that run at once, of both lines together, and that may wait in each line. */
  readonly #sizes: { readonly concurrent: number; readonly ordinary: number; readonly doubtful: number }
  readonly #doubtfulConcurrent: number
  readonly #ordinary: Waiter[] = []
  readonly #doubtful: Waiter[] = []
  /** By owner, in the ordinary line. */
  readonly #waitingOf = new Map<string, number>()
  #running = 0
  #doubtfulRunning = 0

  constructor(sizes: { concurrent: number; ordinary: number; doubtful: number }) {
    this.#sizes = sizes
    this.#doubtfulConcurrent = Math.max(1, Math.floor(sizes.concurrent / 2))
  }

  /** How many jobs run or wait before a job that joins the ordinary line now. */
  get ahead(): number {
    return this.#running + this.#ordinary.length
  }

  get waiting(): number {
    return this.#ordinary.length + this.#doubtful.length
  }

  isFree(line: Line): boolean {
    if (this.#running >= this.#sizes.concurrent) return false
    return (
      line === 'ordinary' || (this.#doubtfulRunning < this.#doubtfulConcurrent && this.#ordinary.length === 0)
    )
  }

  isFull(line: Line, owner: string | undefined): boolean {
    if (this.isFree(line)) return false
    const { ordinary, doubtful } = this.#sizes
    if (line === 'doubtful') return this.#doubtful.length >= doubtful
    return this.#ordinary.length >= ordinary || this.#waitsOf(owner) >= Math.ceil(ordinary / 2)
  }

  /**
   * Runs a job when it is its turn. It waits however long the line is: check `isFull` first. Settles as the job does.
   */
  async run<T>(line: Line, owner: string | undefined, job: () => Promise<T>): Promise<T> {
    if (this.isFree(line)) this.#enter(line)
    else await this.#wait(line, owner)
    try {
      return await job()
    } finally {
      this.#leave(line)
    }
  }

  #enter(line: Line): void {
    this.#running += 1
    if (line === 'doubtful') this.#doubtfulRunning += 1
  }

  #wait(line: Line, owner: string | undefined): Promise<void> {
    return new Promise((begin) => {
      if (line === 'ordinary') this.#count(owner, 1)
      this.#lineOf(line).push({ begin, owner })
    })
  }

  /** Starts the next job in line at once, so that no newcomer overtakes it. */
  #leave(line: Line): void {
    this.#running -= 1
    if (line === 'doubtful') this.#doubtfulRunning -= 1
    this.#callNext('ordinary')
    this.#callNext('doubtful')
  }

  #callNext(line: Line): void {
    const next = this.isFree(line) ? this.#lineOf(line).shift() : undefined
    if (next === undefined) return
    if (line === 'ordinary') this.#count(next.owner, -1)
    this.#enter(line)
    next.begin()
  }

  #count(owner: string | undefined, more: 1 | -1): void {
    if (owner === undefined) return
    const waits = this.#waitsOf(owner) + more
    if (waits > 0) this.#waitingOf.set(owner, waits)
    else this.#waitingOf.delete(owner)
  }

  #lineOf(line: Line): Waiter[] {
    return line === 'ordinary' ? this.#ordinary : this.#doubtful
  }

  #waitsOf(owner: string | undefined): number {
    return owner === undefined ? 0 : (this.#waitingOf.get(owner) ?? 0)
  }
}

/** How many durations are kept: they show how long a verification takes at the moment. */
const KEPT_DURATIONS = 16

interface VerificationRules {
  readonly atOnce: number
  readonly waiting: number
  readonly doubtfulWaiting: number
  /** How long a verification is thought to take before any was measured, in milliseconds. */
  readonly expected: number
  /** Whether pretended jobs cost as much as real ones, and so also show how long one takes. */
  readonly alike: boolean
  readonly full: FaultCode
  readonly what: string
  readonly timer?: ((ms: number) => Promise<void>) | undefined
}

export const pauseFor = (ms: number): Promise<void> => delay(ms, undefined, { ref: false })

/**
 * Runs verifications of passwords a few at a time (C6.3.5). One that can't succeed, because nobody has the name, takes as
 * long (T3.9), but holds up nobody: someone who invents names must not keep others from logging in.
 */
export class VerificationQueue {
  readonly #queue: HashQueue
  readonly #rules: VerificationRules
  readonly #retryAfter: number
  readonly #timer: (ms: number) => Promise<void>
  readonly #durations: Float64Array
  #measured = 0

  constructor(rules: VerificationRules) {
    const { atOnce, waiting, doubtfulWaiting, expected, timer = pauseFor } = rules
    this.#queue = new HashQueue({ concurrent: atOnce, ordinary: waiting, doubtful: doubtfulWaiting })
    this.#rules = rules
    this.#retryAfter = Math.max(1, Math.ceil((waiting * expected) / 1000 / atOnce))
    this.#timer = timer
    this.#durations = new Float64Array(KEPT_DURATIONS).fill(expected)
  }

  get waiting(): number {
    return this.#queue.waiting
  }

  /**
   * Runs a job in its turn. Rejects with the fault of the rules if too many wait.
   * @param times how many verifications the job makes, one after another
   */
  run<T>(line: Line, owner: string | undefined, job: () => Promise<T>, times = 1): Promise<T> {
    this.requireRoom(line, owner)
    return this.#measure(line, owner, job, times)
  }

  /**
   * Resolves after the time of a real verification in this line, and rejects if a real one would (T3.9). The job that
   * costs as much as a real one is run if that holds up nobody.
   */
  async pretend(
    line: Line,
    owner: string | undefined,
    job: () => Promise<unknown>,
    times = 1,
  ): Promise<void> {
    this.requireRoom(line, owner)
    const isRun = line === 'doubtful' || this.#queue.isFree('doubtful')
    if (!isRun) await this.#timer(this.#expectedWait(times))
    else if (this.#rules.alike) await this.#measure('doubtful', owner, job, times)
    else await this.#queue.run('doubtful', owner, job)
  }

  /** How long one of the last verifications took, in milliseconds. */
  typical(): number {
    return this.#durations[Math.floor(Math.random() * KEPT_DURATIONS)] ?? this.#rules.expected
  }

  /** How long the quickest of the last verifications took, in milliseconds. */
  quickest(): number {
    return Math.min(...this.#durations)
  }

  /** How long a job in the ordinary line would take now, in milliseconds. */
  #expectedWait(times: number): number {
    const one = this.typical()
    const rounds = Math.floor(this.#queue.ahead / this.#rules.atOnce)
    // The jobs that run now are somewhere between start and end.
    return one * (rounds === 0 ? times : rounds - 1 + Math.random() + times)
  }

  /** @throws the fault of the rules if too many wait */
  requireRoom(line: Line, owner: string | undefined): void {
    if (!this.#queue.isFull(line, owner)) return
    const { full, what } = this.#rules
    throw new Fault(full, { detail: `the ${line} queue of ${what} is full`, retryAfter: this.#retryAfter })
  }

  #keep(duration: number): void {
    // The first duration that is measured is better than the one that was assumed.
    if (this.#measured === 0) this.#durations.fill(duration)
    this.#durations[this.#measured++ % KEPT_DURATIONS] = duration
  }

  #measure<T>(line: Line, owner: string | undefined, job: () => Promise<T>, times: number): Promise<T> {
    return this.#queue.run(line, owner, async () => {
      const started = performance.now()
      const result = await job()
      this.#keep((performance.now() - started) / times)
      return result
    })
  }
}
