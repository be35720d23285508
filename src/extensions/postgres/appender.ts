import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { FeedPlace } from '../../base/contracts/records/store.ts'
import { budget, goesFirst, outsideBudgets, waitInBudget } from '../../base/kernel/store-budget.ts'
import { MIN_TIME, QUEUE_LIMIT, tooMany, unavailable } from '../../state/stores/link/store-link.ts'
import { stateOf } from './connections.ts'
import type { QueryResult, PostgresLink } from './link.ts'
import { markOf, type PostgresStatements } from './statements.ts'

/** Changes that one statement appends at most. */
const GROUP = 100
const MARK_BYTES = 12

interface NewChange {
  readonly topic: string
  readonly value: string
  /** When the change expires, in milliseconds since the epoch. */
  readonly expiresAt: number | null
  readonly runsUntil: number | null
  readonly now: number
  readonly above: number
}

interface Waiting {
  /** `performance.now()` at which its caller learns that it failed. */
  readonly end: number
  readonly change: NewChange
  readonly resolve: (place: FeedPlace) => void
  readonly reject: (reason: unknown) => void
}

/** One statement at a time, with all that wait: appends change one row, so two would wait for each other. */
export class Appender {
  readonly #link: PostgresLink
  readonly #statements: Pick<PostgresStatements, 'append' | 'appended'>
  #waiting: Waiting[] = []
  #isAppending = false

  constructor(link: PostgresLink, statements: Pick<PostgresStatements, 'append' | 'appended'>) {
    this.#link = link
    this.#statements = statements
  }

  /**
   * Rejects with Fault `identity_unavailable` once the caller's time is over, and at once where too many wait: what has
   * not been sent by then never will be.
   */
  append(change: NewChange): Promise<FeedPlace> {
    if (this.#waiting.length >= QUEUE_LIMIT && !goesFirst()) return Promise.reject(tooMany())
    const { promise, resolve, reject } = Promise.withResolvers<FeedPlace>()
    const { deadline } = this.#link.plan
    const within = Math.min(deadline, budget()?.left() ?? deadline)
    const waiting = { change, end: performance.now() + within, resolve, reject }
    this.#waiting.push(waiting)
    if (!this.#isAppending) void outsideBudgets(() => this.#work())
    return waitInBudget(promise, () => this.#giveUp(waiting), within)
  }

  #giveUp(waiting: Waiting): never {
    this.#waiting = this.#waiting.filter((each) => each !== waiting)
    throw unavailable('no answer in time')
  }

  async #work(): Promise<void> {
    this.#isAppending = true
    for (let group = this.#next(); group.length > 0; group = this.#next()) await this.#appendGroup(group)
    this.#isAppending = false
  }

  /** Without those whose callers are about to learn that it failed. */
  #next(): readonly Waiting[] {
    const now = performance.now()
    const inTime = this.#waiting.filter(({ end }) => end - now >= MIN_TIME)
    this.#waiting = inTime.slice(GROUP)
    return inTime.slice(0, GROUP)
  }

  async #appendGroup(group: readonly Waiting[]): Promise<void> {
    const mark = randomBytes(MARK_BYTES).toString('base64url')
    try {
      const sequences = await this.#write(
        mark,
        group.map(({ change }) => change),
      )
      for (const [at, { resolve, reject }] of group.entries()) {
        const sequence = sequences[at]
        if (sequence === undefined) reject(new Error('the change feed did not take a change'))
        else resolve({ sequence, mark: markOf(mark, at + 1) })
      }
    } catch (thrown) {
      for (const { reject } of group) reject(thrown)
    }
  }

  async #write(mark: string, changes: readonly NewChange[]): Promise<readonly number[]> {
    const now = Math.max(...changes.map((change) => change.now))
    const above = Math.max(...changes.map((change) => change.above))
    const lists = [
      changes.map(({ topic }) => topic),
      changes.map(({ value }) => value),
      changes.map(({ expiresAt }) => expiresAt),
      changes.map(({ runsUntil }) => runsUntil),
    ]
    const values = [mark, now, changes.length, above, ...lists]
    const appended = await this.#link.run(this.#statements.append, values).catch(passIfAppended)
    // Nothing: an earlier try has appended them, though its answer was lost.
    const { rows } = appended.rows.length > 0 ? appended : await this.#appended(mark, changes.length)
    return rows.map((row) => Number(row['sequence'])).sort((one, other) => one - other)
  }

  #appended(mark: string, count: number): Promise<QueryResult> {
    const marks = Array.from({ length: count }, (_, at) => markOf(mark, at + 1))
    return this.#link.run(this.#statements.appended, [marks])
  }
}

const UNIQUE_VIOLATION = '23505'

function passIfAppended(thrown: unknown): Pick<QueryResult, 'rows'> {
  if (stateOf(thrown) !== UNIQUE_VIOLATION) throw thrown
  return { rows: [] }
}
