import type { ClientBase, Pool, PoolClient, PoolConfig, QueryConfig, types } from 'pg'
import { Fault } from '../../kernel/faults.ts'
import { ClockOffset } from '../../kernel/store-clock.ts'
import { budget } from '../../kernel/store-budget.ts'
import { RefusedWrites } from '../refused-writes.ts'
import type { TroubleListener } from '../trouble.ts'
import { Breaker, ConnectionPace } from './breaker.ts'
import type { PostgresPlan } from './config.ts'
import {
  hasLostConnection,
  isUnavailable,
  isWorthAnotherTry,
  reasonOf,
  refusalOf,
  wasInTheWay,
} from './errors.ts'
import { Silence } from './silence.ts'
import { READ_CLOCK, type Statement } from './statement.ts'

/** What Postgres sent, as `pg` reads it: int8 as a number. */
export type Row = Readonly<Record<string, unknown>>

export interface LinkListeners {
  readonly trouble?: TroubleListener | undefined
  /** The store's clock was just read: milliseconds since the epoch, and those that the reading took. */
  readonly clockRead?: ((now: number, took: number) => void) | undefined
}

export interface Answer {
  readonly rows: readonly Row[]
  /** How often the statement was sent before in vain. Postgres may have run it then: its answer may have been lost. */
  readonly triesBefore: number
}

/** Milliseconds that a new connection, or a free one, may take. */
const CONNECT_WITHIN = 500
/** Milliseconds that one statement may take. Postgres itself gives up after 900 (statement_timeout). */
const ANSWER_WITHIN = 1000
/** Milliseconds before the second try; doubled for each further one. */
const FIRST_PAUSE = 3
const LONGEST_PAUSE = 200
/** Milliseconds. If less time is left, the verb fails at once. */
export const MIN_TIME = 10
/** Verbs that may wait for a connection at once: far more than can be answered in time. */
const PENDING_LIMIT = 1000
/** Seconds, for Retry-After. */
const RETRY_AFTER = 1
/** Readings of the store's clock at the start. */
const FIRST_READINGS = 8
/** Milliseconds. */
const CLOSE_WITHIN = 1000
/** Seconds. A connection is made anew then, so that a database that moved by its name is found in the end. */
const LONGEST_CONNECTION = 600

export const unavailable = (detail: string): Fault =>
  new Fault('identity_unavailable', { detail: `store: ${detail}`, retryAfter: RETRY_AFTER })

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

class LateError extends Error {
  constructor() {
    super('the statement arrived too late')
  }
}

class UnfitConnectionError extends Error {
  constructor() {
    super('the server is a standby, or only reads')
  }
}

/** A standby answers with old data, and a server that only reads takes no change: such a connection is no use. */
async function requirePrimary(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ unfit: boolean }>(
    `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS unfit`,
  )
  if (rows[0]?.unfit !== false) throw new UnfitConnectionError()
}

type Parsers = NonNullable<PoolConfig['types']>
type TypeId = Parameters<typeof types.getTypeParser>[0]

/**
 * Every member that `pg` would else take from the environment (PGHOST, PGSSLMODE, …). The password is a function, else
 * an empty one would be looked for in PGPASSWORD and ~/.pgpass.
 */
function poolConfig({ host, port, user, password, database, tls, connections }: PostgresPlan): PoolConfig {
  return {
    ...{ host, port, user, database },
    password: () => password,
    ssl: tls,
    max: connections,
    connectionTimeoutMillis: CONNECT_WITHIN,
    query_timeout: ANSWER_WITHIN,
    maxLifetimeSeconds: LONGEST_CONNECTION,
    keepAlive: true,
    allowExitOnIdle: true,
    application_name: 'postern',
    client_encoding: 'UTF8',
  }
}

/** Reads int8 as a number, which `pg` leaves as text. All of ours are times, numbers and counts below 2^53. */
const withNumbers = ({ getTypeParser, builtins }: Parsers & Pick<typeof types, 'builtins'>): Parsers => ({
  getTypeParser: ((type: TypeId, format: 'text') =>
    type === builtins.INT8 ? Number : (getTypeParser(type, format) as unknown)) as Parsers['getTypeParser'],
})

/**
 * Sends statements to Postgres over a few connections. Each verb has a deadline for all its attempts together. What
 * failed on the way, or because another transaction was in the way, is sent again: so a statement must have the same
 * effect when it is run twice.
 */
export class PostgresLink {
  readonly plan: PostgresPlan
  readonly #pool: Pool
  readonly #breaker = new Breaker()
  readonly #pace = new ConnectionPace()
  readonly #silence = new Silence()
  readonly #refusals = new RefusedWrites()
  /** Where the store's clock stands against performance.now(). Every answer to a write is a reading. */
  readonly #offset = new ClockOffset()
  readonly #listeners: LinkListeners
  #trouble: string | undefined
  #closed = false
  /** Why the last attempt to connect failed: told while no further one is made. */
  #refusal: unknown

  private constructor(plan: PostgresPlan, pool: Pool, listeners: LinkListeners) {
    this.plan = plan
    this.#pool = pool
    this.#listeners = listeners
    // A connection that is not in use failed. The next verb makes a new one.
    pool.on('error', () => undefined)
    // So does one in use: its statement is told. Without a listener `pg` would end the process.
    pool.on('connect', (client) => client.on('error', () => undefined))
  }

  /** Connects, and reads the store's clock. Rejects with Fault `identity_unavailable` if that fails. */
  static async open(plan: PostgresPlan, listeners: LinkListeners = {}): Promise<PostgresLink> {
    // Who has no store of this kind does not pay for it.
    const { default: pg } = await import('pg')
    // `pg` waits for what onConnect returns, though its type says that this is nothing.
    const onConnect = (async (client: ClientBase) => {
      await requirePrimary(client)
      if (plan.answerWithin !== undefined) await client.query(`SET statement_timeout = ${plan.answerWithin}`)
    }) as (client: ClientBase) => void
    const pool = new pg.Pool({ ...poolConfig(plan), types: withNumbers(pg.types), onConnect })
    const link = new PostgresLink(plan, pool, listeners)
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

  /** Of the contract of stores. */
  get refusesWrites(): string | undefined {
    return this.#refusals.reason
  }

  /** Of the contract of stores. */
  silentSince(time: number): number {
    return this.#silence.since(time, this.#storeNow())
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
  async run(statement: Statement, values: readonly unknown[]): Promise<Answer> {
    if (this.#closed) throw unavailable('it is closed')
    if (this.#pool.waitingCount >= PENDING_LIMIT) throw unavailable('too many wait for it')
    const time = budget()
    const within = Math.min(this.plan.deadline, time?.left() ?? this.plan.deadline)
    if (within < MIN_TIME) throw unavailable('what this request asked before took too long')
    const settled = time?.spend()
    try {
      return await inTime(this.#try(statement, values, performance.now() + within), within)
    } finally {
      settled?.()
    }
  }

  /** Statements under way are answered, or given up after a second. Later ones are rejected. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.race([this.#pool.end(), pause(CLOSE_WITHIN)])
  }

  async #try(statement: Statement, values: readonly unknown[], end: number): Promise<Answer> {
    let wait = FIRST_PAUSE
    for (let triesBefore = 0; ; triesBefore += 1) {
      if (!this.#breaker.admit()) throw unavailable(this.#trouble ?? 'it failed shortly before')
      const sentAt = this.#storeNow()
      try {
        const rows = await this.#send(statement, values, end)
        this.#settle(undefined, sentAt)
        if (statement.kind === 'write') this.#refusals.taken(statement.name)
        return { rows, triesBefore }
      } catch (thrown) {
        this.#settle(thrown, sentAt)
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

  async #send(statement: Statement, values: readonly unknown[], end: number): Promise<readonly Row[]> {
    const client = await this.#connect()
    let failure: unknown
    try {
      return await this.#ask(client, statement, values, end)
    } catch (thrown) {
      failure = thrown
      throw thrown
    } finally {
      client.release(failure !== undefined && !(failure instanceof LateError) && hasLostConnection(failure))
    }
  }

  async #connect(): Promise<PoolClient> {
    const { idleCount, totalCount } = this.#pool
    const isNew = idleCount === 0 && totalCount < this.plan.connections
    if (isNew && !this.#pace.admit()) throw this.#refusal
    try {
      const client = await this.#pool.connect()
      this.#pace.succeeded()
      return client
    } catch (thrown) {
      if (isNew) this.#pace.failed()
      this.#refusal = thrown
      throw thrown
    }
  }

  async #ask(
    client: PoolClient,
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
      query_timeout: Math.max(1, Math.min(this.plan.answerWithin ?? ANSWER_WITHIN, end - askedAt)),
    }
    const { rows } = await client.query<Row>(query)
    const now = Number(rows[0]?.[clock ?? 'now'])
    if (now > 0) this.#takeReading(now, askedAt)
    return kind === 'read' ? rows : writtenRows(rows)
  }

  #storeNow(): number {
    return performance.now() + (this.#offset.value ?? 0)
  }

  #takeReading(now: number, askedAt: number): void {
    const answeredAt = performance.now()
    this.#offset.read(now, askedAt, answeredAt)
    this.#listeners.clockRead?.(now, answeredAt - askedAt)
  }

  #settle(thrown: unknown, sentAt: number): void {
    const hasAnswered = thrown === undefined || wasInTheWay(thrown) || !isUnavailable(thrown)
    if (hasAnswered) this.#breaker.succeeded()
    else this.#breaker.failed()
    if (hasAnswered) this.#silence.answered(this.#storeNow())
    else this.#silence.failed(sentAt)
    if (hasAnswered) this.#setTrouble(undefined)
    else if (this.#breaker.isOpen) this.#setTrouble(reasonOf(thrown))
  }

  #noteRefusal({ name, kind }: Statement, thrown: unknown): void {
    const refusal = refusalOf(thrown)
    if (kind === 'write' && refusal !== undefined) this.#refusals.refused(name, refusal)
  }

  #setTrouble(trouble: string | undefined): void {
    const isNews = (trouble === undefined) !== (this.#trouble === undefined)
    this.#trouble = trouble
    if (isNews) this.#listeners.trouble?.(trouble)
  }
}

/** A write answers one row at least, which tells whether it arrived in time. */
function writtenRows(rows: readonly Row[]): readonly Row[] {
  const written = rows.filter((row) => row['done'] !== null)
  if (written.length === 0 && rows[0]?.['late'] === true) throw new LateError()
  return written
}

/** The attempt may go on behind the deadline; what it writes then has no effect (statement.ts). */
function inTime<T>(attempt: Promise<T>, within: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(unavailable('no answer in time')), within)
  attempt.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
