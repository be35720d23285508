import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { PoolClient, QueryConfig } from 'pg'
import type { Fault } from '../../base/kernel/faults.ts'
import { budget, goesFirst } from '../../base/kernel/store-budget.ts'
import { ClockOffset } from '../../base/kernel/store-clock.ts'
import type { TroubleListener } from '../../state/stores/link/store-error.ts'
import { MIN_TIME, RefusedWrites, spentBefore, unavailable } from '../../state/stores/link/store-link.ts'
import type { PostgresPlan } from './schema.ts'
import {
  Breaker,
  ConnectionPace,
  Connections,
  hasLostConnection,
  isUnavailable,
  isWorthAnotherTry,
  LateError,
  reasonOf,
  refusalOf,
  takesNoWrite,
  wasInTheWay,
} from './connections.ts'
import { READ_CLOCK, type Statement } from './statements.ts'

/** Silences that are remembered. A database that fails more often than that within a grace has failed for that client. */
const REMEMBERED = 100

interface Interval {
  readonly from: number
  /** Undefined: it has not ended. */
  until: number | undefined
}

/**
 * When the database did not answer this process. Times are those of `performance.now()`. Only the times without an
 * answer count, and not those between them: otherwise a database that fails now and then would lengthen the grace of a
 * refresh token by as long as that continues.
 */
export class Silence {
  readonly #intervals: Interval[] = []

  /** @param sentAt when the request was sent that got no answer: what it wrote may have been written from then on */
  failed(sentAt: number): void {
    const last = this.#intervals.at(-1)
    if (last !== undefined && last.until === undefined) return
    this.#intervals.push({ from: Math.max(sentAt, last?.until ?? sentAt), until: undefined })
    if (this.#intervals.length > REMEMBERED) this.#intervals.shift()
  }

  answered(now: number): void {
    const last = this.#intervals.at(-1)
    if (last !== undefined) last.until ??= Math.max(now, last.from)
  }

  /** For how long there was no answer since a time, in milliseconds. */
  since(time: number, now: number): number {
    return this.#intervals.reduce(
      (sum, { from, until = now }) => sum + Math.max(0, until - Math.max(from, time)),
      0,
    )
  }
}

/** A row that Postgres sent, as `pg` reads it: int8 as a number. */
export type Row = Readonly<Record<string, unknown>>

interface LinkListeners {
  readonly trouble?: TroubleListener | undefined
  /** The store's clock was just read: milliseconds since the epoch, and those that the reading took. */
  readonly clockRead?: ((now: number, took: number) => void) | undefined
}

export interface QueryResult {
  readonly rows: readonly Row[]
  /** How often the statement was sent before without success. Postgres may have run it then: its answer may have been lost. */
  readonly triesBefore: number
}

/** Milliseconds for one try, and for all, of what goes before requests: a dead connection is found out soon. */
const AHEAD_WITHIN = 1000
const AHEAD_DEADLINE = 2000
/** Milliseconds before the second try; doubled for each further one. */
const FIRST_PAUSE = 3
const LONGEST_PAUSE = 200
/** Readings of the store's clock at the start. */
const FIRST_READINGS = 8

/**
 * Sends statements to Postgres over a few connections. Each verb has a deadline for all its attempts together. What
 * failed on the way, or because another transaction was in the way, is sent again: so a statement must have the same
 * effect when it is run twice.
 */
export class PostgresLink {
  readonly plan: PostgresPlan
  readonly #requests: Connections
  /** Connections of its own, so that the change feed and the keys wait behind no login. */
  readonly #ahead: Connections
  readonly #breaker = new Breaker()
  readonly #silence = new Silence()
  readonly #refusals = new RefusedWrites()
  /** The difference between the store's clock and performance.now(). Every answer to a write is a reading. */
  readonly #offset = new ClockOffset()
  readonly #listeners: LinkListeners
  #trouble: string | undefined
  #closed = false

  private constructor(plan: PostgresPlan, [requests, ahead]: Lanes, listeners: LinkListeners) {
    this.plan = plan
    this.#requests = requests
    this.#ahead = ahead
    this.#listeners = listeners
  }

  /** Connects, and reads the store's clock. Rejects with Fault `identity_unavailable` if that fails. */
  static async open(plan: PostgresPlan, listeners: LinkListeners = {}): Promise<PostgresLink> {
    const link = new PostgresLink(plan, await openLanes(plan), listeners)
    try {
      for (let n = 0; n < FIRST_READINGS; n += 1) await link.readClock()
      return link
    } catch (thrown) {
      await link.close()
      throw thrown
    }
  }

  /** Why the database cannot be used, in words for the log; undefined if it can. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  get refusesWrites(): string | undefined {
    return this.#refusals.reason
  }

  /** Milliseconds of the last `ms` in which the database did not answer. Its own clock may have jumped meanwhile. */
  silentFor(ms: number): number {
    const now = performance.now()
    return this.#silence.since(now - ms, now)
  }

  /** By how much the clock of the database is ahead of this machine's, in milliseconds. */
  async readClock(): Promise<number> {
    await this.run(READ_CLOCK, [])
    return performance.now() + (this.#offset.value ?? 0) - Date.now()
  }

  /**
   * Runs a statement. Rejects with Fault `identity_unavailable` if there is no answer in time, or if the database
   * cannot do its work, and with the error of Postgres if the statement is wrong.
   */
  async run(statement: Statement, values: readonly unknown[]): Promise<QueryResult> {
    if (this.#closed) throw unavailable('it is closed')
    const isAhead = goesFirst()
    // While the breaker is open, others wait for this attempt: on this lane a dead connection is noticed sooner.
    const lane = isAhead || this.#breaker.isOpen ? this.#ahead : this.#requests
    const deadline = Math.min(this.plan.deadline, isAhead ? AHEAD_DEADLINE : Infinity)
    const time = budget()
    const within = Math.min(deadline, time?.left() ?? deadline)
    if (within < MIN_TIME) throw spentBefore()
    if (this.#breaker.refuses) throw this.#refusal()
    const settled = time?.spend()
    try {
      const end = performance.now() + within
      const attempt = lane.inTurn(end, () => this.#try(lane, statement, values, end))
      return await inTime(attempt, within)
    } finally {
      settled?.()
    }
  }

  /** Statements under way are answered, or given up after a second. Later ones are rejected. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.all([this.#requests.close(), this.#ahead.close()])
  }

  async #try(
    lane: Connections,
    statement: Statement,
    values: readonly unknown[],
    end: number,
  ): Promise<QueryResult> {
    let wait = FIRST_PAUSE
    for (let triesBefore = 0; ; triesBefore += 1) {
      if (end - performance.now() < MIN_TIME) throw unavailable('no connection was free in time')
      const mayTry = lane === this.#ahead || !this.#breaker.isOpen
      if (!mayTry || !this.#breaker.admit()) throw this.#refusal()
      const sentAt = performance.now()
      try {
        const rows = await lane.use((client) => this.#ask(client, lane.within, statement, values, end))
        this.#settle(statement, undefined, sentAt)
        if (statement.kind === 'write') this.#refusals.taken(statement.name)
        return { rows, triesBefore }
      } catch (thrown) {
        this.#settle(statement, thrown, sentAt)
        if (!isUnavailable(thrown)) throw thrown
        if (!isWorthAnotherTry(thrown) || performance.now() + wait >= end) {
          this.#noteRefusal(statement, thrown)
          throw unavailable(reasonOf(thrown))
        }
      }
      await pause(wait * (0.5 + Math.random() / 2))
      wait = Math.min(wait * 2, LONGEST_PAUSE)
    }
  }

  async #ask(
    client: PoolClient,
    within: number,
    { name, sql, kind, clock }: Statement,
    values: readonly unknown[],
    end: number,
  ): Promise<readonly Row[]> {
    const askedAt = performance.now()
    const until = askedAt + (this.#offset.value ?? 0) + Math.max(0, end - askedAt)
    const query: QueryConfig & { query_timeout: number } = {
      ...(this.plan.preparedStatements && { name }),
      text: sql,
      values: kind === 'write' ? [...values, Math.floor(until)] : [...values],
      // Not what is left to the caller: then each one that has waited for long would cost a connection.
      query_timeout: within,
    }
    const { rows } = await client.query<Row>(query)
    const now = Number(rows[0]?.[clock ?? 'now'])
    if (now > 0) this.#takeReading(now, askedAt)
    return kind === 'read' ? rows : writtenRows(rows)
  }

  #takeReading(now: number, askedAt: number): void {
    const answeredAt = performance.now()
    this.#offset.read(now, askedAt, answeredAt)
    this.#listeners.clockRead?.(now, answeredAt - askedAt)
  }

  #refusal(): Fault {
    return unavailable(this.#trouble ?? 'it failed shortly before')
  }

  #settle({ kind }: Statement, thrown: unknown, sentAt: number): void {
    const hasAnswered =
      thrown === undefined ||
      thrown instanceof LateError ||
      wasInTheWay(thrown) ||
      (kind === 'write' && takesNoWrite(thrown)) ||
      !isUnavailable(thrown)
    if (hasAnswered) this.#breaker.succeeded()
    else this.#fail(thrown)
    if (hasAnswered) this.#silence.answered(performance.now())
    else this.#silence.failed(sentAt)
    if (hasAnswered) this.#setTrouble(undefined)
    else if (this.#breaker.isOpen) this.#setTrouble(reasonOf(thrown))
  }

  #noteRefusal({ name, kind }: Statement, thrown: unknown): void {
    const refusal = refusalOf(thrown)
    if (kind === 'write' && refusal !== undefined) this.#refusals.refused(name, refusal)
  }

  #fail(thrown: unknown): void {
    if (!this.#breaker.failed() || !hasLostConnection(thrown)) return
    for (const lane of [this.#requests, this.#ahead]) lane.giveUp()
  }

  #setTrouble(trouble: string | undefined): void {
    const isNews = (trouble === undefined) !== (this.#trouble === undefined)
    this.#trouble = trouble
    if (isNews) this.#listeners.trouble?.(trouble)
  }
}

type Lanes = readonly [requests: Connections, ahead: Connections]

async function openLanes(plan: PostgresPlan): Promise<Lanes> {
  const pace = new ConnectionPace()
  const within = plan.answerWithin ?? plan.deadline
  return Promise.all([
    Connections.open(plan, { most: plan.connections, within, pace }),
    Connections.open(plan, { most: 1, within: Math.min(AHEAD_WITHIN, within), pace }),
  ])
}

/** A write answers one row at least. It says whether the write arrived in time. */
function writtenRows(rows: readonly Row[]): readonly Row[] {
  const written = rows.filter((row) => row['done'] !== null)
  if (written.length === 0 && rows[0]?.['late'] === true) throw new LateError()
  return written
}

/** The attempt may continue behind the deadline; what it writes then has no effect (`writing`). */
function inTime<T>(attempt: Promise<T>, within: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(unavailable('no answer in time')), within)
  attempt.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
