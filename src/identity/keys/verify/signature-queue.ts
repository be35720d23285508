import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers'
import type { Caller } from '../../../base/contracts/people/keys.ts'
import { Fault } from '../../../base/kernel/faults.ts'

/** The time for signatures in one turn of the event loop, in milliseconds: other calls wait no longer than that for them. */
const TURN = 1
/** How many signatures may wait for a turn: half a second of work for ES256. */
const MOST_WAITING = 5_000
/** Slow ones at once: as many as libuv's pool has threads, so that a file or a name waits for one of them at most. */
const SLOW_AT_ONCE = 4
/** Slow ones that may wait: a second of work. */
const MOST_SLOW_WAITING = 1_000

interface Job {
  readonly begin: () => void
  readonly refuse: (fault: Fault) => void
  readonly caller: Caller | undefined
}

/** Lets work begin in the order in which it came, while `hasRoom` says so. */
class Line {
  readonly #jobs: Job[] = []
  readonly #most: number
  readonly #hasRoom: () => boolean

  constructor(most: number, hasRoom: () => boolean) {
    this.#most = most
    this.#hasRoom = hasRoom
  }

  get waiting(): number {
    return this.#jobs.length
  }

  /** @throws Fault `token_judge_unavailable` if too many wait; the promise rejects with `client_gone` */
  run<T>(work: () => T | Promise<T>, caller: Caller | undefined): T | Promise<T> {
    if (this.#jobs.length === 0 && this.#hasRoom()) return work()
    if (this.#jobs.length >= this.#most)
      throw new Fault('token_judge_unavailable', { detail: 'too many signatures wait to be checked' })
    return new Promise((resolve, reject) => {
      this.#jobs.push({ begin: () => resolve(work()), refuse: reject, caller })
    })
  }

  callNext(): void {
    while (this.#hasRoom()) {
      const job = this.#jobs.shift()
      if (job === undefined) return
      if (job.caller?.gone === true) job.refuse(new Fault('client_gone', { detail: LEFT }))
      else job.begin()
    }
  }
}

const LEFT = 'the client left before its token was checked'

/**
 * The signatures that a thread checks. A quick one takes less time than handing it to another thread; so it is checked
 * here, but only so many in one turn of the event loop. A slow one is checked by a thread of libuv's pool.
 */
export class SignatureQueue {
  readonly #now: () => number
  readonly #nextTurn: (work: () => void) => void
  readonly #quick = new Line(MOST_WAITING, () => this.#spent < TURN)
  readonly #slow = new Line(MOST_SLOW_WAITING, () => this.#slowRunning < SLOW_AT_ONCE)
  /** The time that this turn has taken, in milliseconds. */
  #spent = 0
  #isTurnAwaited = false
  #slowRunning = 0

  /** @param now milliseconds, monotonic */
  constructor(
    now = () => performance.now(),
    nextTurn: (work: () => void) => void = (work) => void setImmediate(work),
  ) {
    this.#now = now
    this.#nextTurn = nextTurn
  }

  get waiting(): number {
    return this.#quick.waiting + this.#slow.waiting
  }

  /** @throws as `Line.run` */
  quick(check: () => boolean, caller: Caller | undefined): boolean | Promise<boolean> {
    return this.#quick.run(() => this.#spend(check), caller)
  }

  /** @throws as `Line.run` */
  slow(check: () => Promise<boolean>, caller: Caller | undefined): boolean | Promise<boolean> {
    return this.#slow.run(() => {
      this.#slowRunning += 1
      return check().finally(() => {
        this.#slowRunning -= 1
        this.#slow.callNext()
      })
    }, caller)
  }

  #spend(check: () => boolean): boolean {
    const begun = this.#now()
    const result = check()
    this.#spent += this.#now() - begun
    if (!this.#isTurnAwaited) this.#nextTurn(this.#begin)
    this.#isTurnAwaited = true
    return result
  }

  readonly #begin = (): void => {
    this.#spent = 0
    this.#isTurnAwaited = false
    this.#quick.callNext()
  }
}
