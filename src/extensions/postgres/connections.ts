import { performance } from 'node:perf_hooks'
import type { Client, ClientBase, Pool, PoolClient, PoolConfig, types } from 'pg'
import { messageOf, reasonInWords } from '../../base/kernel/thrown.ts'
import { QUEUE_LIMIT, tooMany, unavailable } from '../../state/stores/link/store-link.ts'
import type { PostgresPlan } from './schema.ts'

/** An error with a SQLSTATE code, which Postgres itself has sent. A system error has no `severity`. */
interface ServerError extends Error {
  readonly code: string
  readonly severity: string
}

const isServerError = (thrown: unknown): thrown is ServerError =>
  thrown instanceof Error && 'severity' in thrown && 'code' in thrown && typeof thrown.code === 'string'

/** The SQLSTATE; undefined if Postgres has sent none: the connection failed, or nothing came in time. */
export const stateOf = (thrown: unknown): string | undefined =>
  isServerError(thrown) ? thrown.code : undefined

const beginsWithOneOf = (state: string, beginnings: readonly string[]): boolean =>
  beginnings.some((beginning) => state.startsWith(beginning))

/** A transaction that was in the way of another one. The same statement may succeed at once. */
const IN_THE_WAY = ['40001', '40P01']
/** The connection is lost, the server stops or starts, or it only reads (a standby). */
const SERVER_GONE = ['08', '57P', '25006']
/** Failures that an operator must solve: rights, limits, a missing table or database, a full disk, a broken server. */
const OUT_OF_ORDER = ['28', '3D', '3F', '42501', '42P01', '53', '55', '57', '58', 'XX']

/** Whether the statement may be sent again, with the same attempt id. */
export function isWorthAnotherTry(thrown: unknown): boolean {
  const state = stateOf(thrown)
  return state === undefined || beginsWithOneOf(state, IN_THE_WAY) || beginsWithOneOf(state, SERVER_GONE)
}

/** Whether the database could not do its work, so that its state is in question; otherwise the statement itself is wrong. */
export function isUnavailable(thrown: unknown): boolean {
  const state = stateOf(thrown)
  return isWorthAnotherTry(thrown) || (state !== undefined && beginsWithOneOf(state, OUT_OF_ORDER))
}

/** Whether the database answered, and only another transaction was in the way. */
export const wasInTheWay = (thrown: unknown): boolean => IN_THE_WAY.includes(stateOf(thrown) ?? '')

/** Whether the connection must not be used again. */
export function hasLostConnection(thrown: unknown): boolean {
  const state = stateOf(thrown)
  return state === undefined || beginsWithOneOf(state, SERVER_GONE)
}

/** In words for the log. Postgres' messages name no secret; the detail, which may hold values, is left out. */
export function reasonOf(thrown: unknown): string {
  const state = stateOf(thrown)
  return state === undefined ? reasonInWords(thrown) : `${messageOf(thrown)} (SQLSTATE ${state})`
}

/** Why a database that answers cannot write, by SQLSTATE. */
const CANNOT_WRITE: Readonly<Record<string, string>> = {
  '53100': 'its disk is full',
  '25006': 'it only reads',
  '42501': 'its role may not write',
}

/** Whether the database answered, and takes no write: so it can be read. */
export const takesNoWrite = (thrown: unknown): boolean =>
  !hasLostConnection(thrown) && (stateOf(thrown) ?? '') in CANNOT_WRITE

/** Why the database has refused a write that it would take otherwise, in words without an address; undefined for other errors. */
export function refusalOf(thrown: unknown): string | undefined {
  const state = stateOf(thrown)
  if (state === undefined || !beginsWithOneOf(state, ['25006', ...OUT_OF_ORDER])) return undefined
  return `${CANNOT_WRITE[state] ?? 'it refuses them'} (SQLSTATE ${state})`
}

/** Failures in a row after which nothing is asked for a while. */
const FAILURES = 5
/** How long nothing is asked then, in milliseconds. */
const PAUSE = 500

/**
 * Spares a store that does not answer, and the callers who would wait for it: after five failures in a row everything
 * fails at once for half a second. Then one request may try. The poll of the change feed tries soon enough by itself.
 */
export class Breaker {
  readonly #monotonic: () => number
  #failures = 0
  #openUntil = 0
  #isProbing = false

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
  }

  /** Whether requests fail at once at the moment, but for one that may try. */
  get isOpen(): boolean {
    return this.#failures >= FAILURES
  }

  get refuses(): boolean {
    return this.isOpen && (this.#isProbing || this.#monotonic() < this.#openUntil)
  }

  /** Whether a request may be sent. After true, `succeeded` or `failed` must be called. */
  admit(): boolean {
    if (this.refuses) return false
    this.#isProbing = this.isOpen
    return true
  }

  succeeded(): void {
    this.#failures = 0
    this.#isProbing = false
  }

  /** Whether everything fails at once from now on, and did not before. */
  failed(): boolean {
    this.#failures += 1
    this.#isProbing = false
    if (this.isOpen) this.#openUntil = this.#monotonic() + PAUSE
    return this.#failures === FAILURES
  }
}

/** New connections within a second, while none succeeds. */
const ATTEMPTS = 2
/** The time in which these attempts are counted, in milliseconds. */
const SECOND = 1000

/** Many processes that all try to connect at once would keep a database that starts from starting. */
export class ConnectionPace {
  readonly #monotonic: () => number
  /** The times of the last attempts since one succeeded. */
  #attempts: number[] = []
  #isReachable = true
  #failure: unknown

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
  }

  /** Why the last attempt of anybody failed: the answer while no further one is made. */
  get failure(): unknown {
    return this.#failure
  }

  /** Whether a connection may be made now. Counts it. */
  admit(): boolean {
    if (this.#isReachable) return true
    const now = this.#monotonic()
    this.#attempts = this.#attempts.filter((at) => now - at < SECOND)
    if (this.#attempts.length >= ATTEMPTS) return false
    this.#attempts.push(now)
    return true
  }

  succeeded(): void {
    this.#isReachable = true
    this.#attempts = []
  }

  failed(thrown: unknown): void {
    this.#isReachable = false
    this.#failure = thrown
  }
}

/**
 * How long a connection lives, in seconds. It is then made anew, so that a database whose name now leads elsewhere is
 * found in the end.
 */
const LONGEST_CONNECTION = 600
/** How long `close` waits for statements under way, in milliseconds. */
const CLOSE_WITHIN = 1000

/** The statement came too late to have an effect. The connection is good. */
export class LateError extends Error {
  constructor() {
    super('the statement arrived too late')
  }
}

class UnfitConnectionError extends Error {
  constructor() {
    super('the server is a standby, or only reads')
  }
}

/**
 * A standby answers with old data, and a server that only reads takes no change: such a connection is no use. The time of a
 * statement is set whatever the role or the database has: so it is the one of this process.
 */
async function prepare(client: ClientBase, within: number): Promise<void> {
  const { rows } = await client.query<{ unfit: boolean }>(
    `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS unfit,
       set_config('statement_timeout', '${within}', false)`,
  )
  if (rows[0]?.unfit !== false) throw new UnfitConnectionError()
}

type Parsers = NonNullable<PoolConfig['types']>
type TypeId = Parameters<typeof types.getTypeParser>[0]

/** Reads int8 as a number, which `pg` leaves as text. All of ours are times, numbers and counts below 2^53. */
const withNumbers = ({ getTypeParser, builtins }: Parsers & Pick<typeof types, 'builtins'>): Parsers => ({
  getTypeParser: ((type: TypeId, format: 'text') =>
    type === builtins.INT8 ? Number : (getTypeParser(type, format) as unknown)) as Parsers['getTypeParser'],
})

interface ConnectionsPlan {
  readonly most: number
  /** Milliseconds that a connection may take to be made, and one statement on it. */
  readonly within: number
  /** Shared by all connections of a process to a database. */
  readonly pace: ConnectionPace
}

/**
 * Every member that `pg` would otherwise take from the environment (PGHOST, PGSSLMODE, …). The password is a function:
 * for an empty text `pg` would look in PGPASSWORD and ~/.pgpass.
 */
const poolConfig = (
  { host, port, user, password, database, tls }: PostgresPlan,
  { most, within }: ConnectionsPlan,
): PoolConfig => ({
  host,
  port,
  user,
  database,
  password: () => password,
  ssl: tls,
  max: most,
  connectionTimeoutMillis: within,
  query_timeout: within,
  maxLifetimeSeconds: LONGEST_CONNECTION,
  keepAlive: true,
  allowExitOnIdle: true,
  application_name: 'postern',
  client_encoding: 'UTF8',
})

export class Connections {
  /** Milliseconds that one statement may take. */
  readonly within: number
  readonly #pool: Pool
  readonly #pace: ConnectionPace
  #free: number
  readonly #waiting = new Set<() => void>()
  /** Connections that were made since the database was last out of reach. */
  #sound = new WeakSet<ClientBase>()
  readonly #inUse = new Set<PoolClient>()

  private constructor(pool: Pool, { most, within, pace }: ConnectionsPlan) {
    this.#pool = pool
    this.#pace = pace
    this.#free = most
    this.within = within
    // A connection that is not in use failed. The next request that needs one makes it.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => {
      this.#sound.add(client)
      // One in use failed, and its statement with it. Without a listener `pg` would end the process.
      client.on('error', () => undefined)
    })
  }

  static async open(plan: PostgresPlan, of: ConnectionsPlan): Promise<Connections> {
    // Loaded here: a process without a store of this kind does not load `pg`.
    const { default: pg } = await import('pg')
    // `pg` waits for what onConnect returns, though its type says that this is nothing.
    const onConnect = ((client: ClientBase) => prepare(client, of.within)) as (client: ClientBase) => void
    return new Connections(
      new pg.Pool({ ...poolConfig(plan, of), types: withNumbers(pg.types), onConnect }),
      of,
    )
  }

  /**
   * Runs work that uses one connection at a time, when it is its turn. Waiting for that says nothing about the
   * database. Rejects with Fault `identity_unavailable` where too many wait, or until `performance.now()` is `until`;
   * else as the work does.
   */
  async inTurn<T>(until: number, work: () => Promise<T>): Promise<T> {
    await this.#turn(until)
    try {
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next === undefined) this.#free += 1
      else next()
    }
  }

  /** Only in a turn. Rejects as connecting does, and as the work does. */
  async use<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#connect()
    this.#inUse.add(client)
    let failure: unknown
    try {
      return await work(client)
    } catch (thrown) {
      failure = thrown
      throw thrown
    } finally {
      this.#inUse.delete(client)
      client.release(failure !== undefined && !(failure instanceof LateError) && hasLostConnection(failure))
    }
  }

  /**
   * The database is out of reach: all connections are given up. Those on which an answer is awaited would keep others waiting
   * after it has come back, because nothing may ever come on them again.
   */
  giveUp(): void {
    this.#sound = new WeakSet()
    for (const client of this.#inUse) void (client as unknown as Client).end().catch(() => undefined)
  }

  /** Statements under way are answered, or given up after a second. */
  async close(): Promise<void> {
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_WITHIN).unref())
    await Promise.race([this.#pool.end(), late])
  }

  #turn(until: number): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve()
    }
    if (this.#waiting.size >= QUEUE_LIMIT) return Promise.reject(tooMany())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(next)
        reject(unavailable('no connection was free in time'))
      }, until - performance.now())
      const next = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(next)
        resolve()
      }
      this.#waiting.add(next)
    })
  }

  async #connect(): Promise<PoolClient> {
    for (;;) {
      // Requests that wait get the idle ones: in a turn, nobody waits for one that is in use.
      const isNew = this.#pool.idleCount <= this.#pool.waitingCount
      if (isNew && !this.#pace.admit()) throw this.#pace.failure
      let client: PoolClient
      try {
        client = await this.#pool.connect()
      } catch (thrown) {
        if (isNew) this.#pace.failed(thrown)
        throw thrown
      }
      if (this.#sound.has(client)) {
        if (isNew) this.#pace.succeeded()
        return client
      }
      client.release(true)
    }
  }
}
