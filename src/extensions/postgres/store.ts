import { randomBytes } from 'node:crypto'
import {
  type AppendOptions,
  type Change,
  type Entry,
  type FeedPage,
  type FeedPlace,
  type IndexValues,
  type NewEntry,
  type NewRecord,
  type PageQuery,
  type Purpose,
  type SharedParts,
  type Store,
  STORE_INDEXES,
  type StoredValue,
  type StoreIndex,
} from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { TrustedOffset } from '../../base/kernel/store-clock.ts'
import {
  type ChangeRow,
  type RecordRow,
  removeInBatches,
  toChange,
  toEntry,
  wholeTime,
} from '../../state/stores/link/rows.ts'
import { unavailable } from '../../state/stores/link/store-link.ts'
import { Appender } from './appender.ts'
import { openRatesOf } from './leased-buckets.ts'
import type { PostgresLink, Row } from './link.ts'
import { NEWEST_TABLES } from './migrations.ts'
import { NodeBeat } from './node-beat.ts'
import { Purging } from './purging.ts'
import { PostgresBudgets, PostgresLockouts, PostgresNodes } from './shared-parts.ts'
import { TurnsOfNodes } from './shared-turns.ts'
import {
  indexColumn,
  indexesOf,
  keyColumns,
  partColumns,
  type PostgresStatements,
  type Statement,
  statementsOf,
} from './statements.ts'

/** First the end of the feed, with the store's clock; then changes. Undefined: the place is not in the feed any more. */
function toPage(
  [end, ...found]: readonly Row[],
  after: FeedPlace | undefined,
  limit: number,
  ran: number,
): FeedPage | undefined {
  if (end === undefined) throw new Error('the table `feed` has no row')
  if (after !== undefined && !isAt(after, found[0]) && !isAt(after, end)) return undefined
  const later = found[0]?.['sequence'] === after?.sequence ? found.slice(1) : found
  const more = later.length > limit
  const changes = (more ? later.slice(0, limit) : later).map((row) => toChange(row as ChangeRow, ran))
  const last = more ? placeOf(changes.at(-1)) : endOf(end)
  const keys = (end['topic'] ?? '') as string
  return { changes, last, now: Number(end['value']), keys, restarted: false, more }
}

/** Whether the place is still in the feed: as its first change, or as its end, whose change was removed. */
const isAt = (after: FeedPlace, row: Row | undefined): boolean =>
  row?.['sequence'] === after.sequence && row['mark'] === after.mark

const endOf = ({ sequence, mark }: Row): FeedPlace | undefined =>
  sequence === 0 ? undefined : { sequence: sequence as number, mark: mark as string }

const placeOf = (change: Change | undefined): FeedPlace | undefined =>
  change && { sequence: change.sequence, mark: change.mark }

const ATTEMPT_BYTES = 12

/** Drawn for each call, and the same in all its tries: so an answer that was lost changes nothing. */
const drawAttempt = (): string => randomBytes(ATTEMPT_BYTES).toString('base64url')

/** The store contract in a Postgres database that several nodes share. nodes.md says by which means it keeps it. */
export class PostgresStore implements Store {
  readonly shared: SharedParts
  readonly nodes: PostgresNodes
  readonly #link: PostgresLink
  readonly #clock: Clock
  readonly #offset: TrustedOffset | undefined
  readonly #statements: PostgresStatements
  readonly #appender: Appender
  readonly #purging: Purging
  readonly #holder = drawAttempt()
  /** How long the service had run on this store, in milliseconds, when this process opened it. */
  readonly #ranBefore: number
  readonly #openedAt: number

  private constructor(
    {
      link,
      clock,
      offset,
    }: {
      readonly link: PostgresLink
      readonly clock: Clock
      /** The offset of the store's clock, if `clock` is that one. */
      readonly offset: TrustedOffset | undefined
    },
    statements: PostgresStatements,
    ranBefore: number,
  ) {
    this.#link = link
    this.#offset = offset
    const nodes = new PostgresNodes(link, NEWEST_TABLES, offset)
    const turns = new PostgresLockouts(link)
    this.nodes = nodes
    this.shared = {
      maxAge: link.plan.maxAge,
      atStart: () => nodes.atStart(),
      live: () => nodes.live(),
      join: (node) => new NodeBeat({ ...node, nodes }),
      openRates: openRatesOf(new PostgresBudgets(link)),
      openTurns: (timer, clock) => new TurnsOfNodes(turns, timer, clock),
    }
    this.#clock = clock
    this.#statements = statements
    this.#ranBefore = ranBefore
    this.#openedAt = clock.monotonic()
    this.#appender = new Appender(link, statements)
    this.#purging = new Purging(link)
  }

  /** The tables must be there. Rejects with Fault `identity_unavailable` if the database cannot be read. */
  static async open(link: PostgresLink, clock: Clock, offset?: TrustedOffset): Promise<PostgresStore> {
    const statements = statementsOf(link.plan.schema)
    const { rows } = await link.run(statements.running, [])
    return new PostgresStore({ link, clock, offset }, statements, Number(rows[0]?.['ran'] ?? 0))
  }

  get patience(): number {
    return this.#link.plan.deadline
  }

  get trouble(): string | undefined {
    return this.#link.trouble
  }

  get refusesWrites(): string | undefined {
    return this.#link.refusesWrites
  }

  async create(kind: string, key: string, entry: NewEntry): Promise<boolean> {
    const attempt = drawAttempt()
    const columns = recordColumns({ kind, key, ...entry }, attempt)
    const { rows, triesBefore } = await this.#link.run(this.#statements.create, [...columns, this.#now()])
    if (rows.length > 0) return true
    return triesBefore > 0 && (await this.#has(this.#statements.created, [kind, columns[1], attempt]))
  }

  async find(kind: string, key: string, purpose: Purpose = 'use'): Promise<Entry | undefined> {
    const [short] = keyColumns(key)
    const { rows } = await this.#link.run(this.#statements.find, [kind, short, this.#now()])
    const entry = rows[0] && toEntry(rows[0] as RecordRow)
    if (purpose === 'end') return entry
    // By the clock of the store it has expired. While that clock is doubted, nobody knows.
    if ((entry?.expiresAt ?? Number.POSITIVE_INFINITY) <= this.#now() + (this.#offset?.doubt ?? 0))
      throw unavailable('its clock has jumped, so nobody knows whether this has expired')
    return entry
  }

  consume(kind: string, key: string): Promise<{ first: boolean; entry: Entry } | undefined> {
    return this.#use(this.#statements.consume, kind, key, drawAttempt(), [])
  }

  redeem(
    kind: string,
    key: string,
    { value, expiresAt }: { value: StoredValue; expiresAt?: number | undefined },
    creates: readonly NewRecord[],
  ): Promise<{ first: boolean; entry: Entry } | undefined> {
    const attempt = drawAttempt()
    const rows = creates.map((record) => recordColumns(record, attempt))
    const lists = Array.from({ length: COLUMN_COUNT }, (_, at) => rows.map((columns) => columns[at]))
    const values = [JSON.stringify(value), wholeTime(expiresAt), ...lists]
    return this.#use(this.#statements.redeem, kind, key, attempt, values)
  }

  async replace(
    kind: string,
    key: string,
    version: number,
    value: StoredValue,
    expiresAt?: number,
  ): Promise<boolean> {
    const [short] = keyColumns(key)
    const next = [JSON.stringify(value), wholeTime(expiresAt), drawAttempt()]
    await this.#requireSure(kind, key)
    return this.#has(this.#statements.replace, [kind, short, this.#now(), version, ...next])
  }

  async remove(kind: string, key: string, version?: number): Promise<boolean> {
    const [short] = keyColumns(key)
    const values = [kind, short, this.#now(), version ?? null]
    return (await this.#remove(this.#statements.remove, values)).live > 0
  }

  list(kind: string, page?: PageQuery): Promise<readonly Entry[]> {
    return this.pageBy(kind, {}, page)
  }

  listBy(kind: string, index: StoreIndex, value: string): Promise<readonly Entry[]> {
    return this.pageBy(kind, { [index]: value })
  }

  async pageBy(kind: string, where: IndexValues, page?: PageQuery): Promise<readonly Entry[]> {
    const values = [kind, this.#now(), ...partColumns(page), ...indexColumns(where)]
    const { rows } = await this.#link.run(this.#statements.where(where).page, values)
    return (rows as readonly RecordRow[]).map(toEntry)
  }

  removeBy(kind: string, where: IndexValues): Promise<number> {
    const { remove } = this.#statements.where(where)
    const columns = indexColumns(where)
    return removeInBatches((most) => this.#remove(remove, [kind, this.#now(), most, ...columns]))
  }

  async countBy(kind: string, where: IndexValues): Promise<number> {
    const { count } = this.#statements.where(where)
    const { rows } = await this.#link.run(count, [kind, this.#now(), ...indexColumns(where)])
    return Number(rows[0]?.['live'])
  }

  async lastUseBy(kind: string, where: IndexValues): Promise<number | undefined> {
    const { lastUse } = this.#statements.where(where)
    const { rows } = await this.#link.run(lastUse, [kind, this.#now(), ...indexColumns(where)])
    return (rows[0]?.['at'] ?? undefined) as number | undefined
  }

  append(
    topic: string,
    value: StoredValue,
    { expiresAt, above = 0 }: AppendOptions = {},
  ): Promise<FeedPlace> {
    const { now, ran } = this.#times()
    const runsUntil = expiresAt === undefined ? null : ran + Math.ceil(expiresAt) - now
    const change = { topic, value: JSON.stringify(value), expiresAt: wholeTime(expiresAt), runsUntil }
    return this.#appender.append({ ...change, now, above })
  }

  async changes(after: FeedPlace | undefined, limit: number): Promise<FeedPage> {
    const { now, ran } = this.#times()
    // One row more than asked for, which shows whether there are more. And the place itself.
    const values = [after?.sequence ?? 0, now, ran, limit + (after === undefined ? 1 : 2)]
    const { rows } = await this.#link.run(this.#statements.changes, values)
    const page = toPage(rows, after, limit, ran)
    return page ?? { ...(await this.changes(undefined, limit)), restarted: after !== undefined }
  }

  hold(lease: string, ms: number): Promise<boolean> {
    return this.#has(this.#statements.hold, [lease, this.#holder, Math.ceil(ms)])
  }

  async release(lease: string): Promise<void> {
    await this.#link.run(this.#statements.release, [lease, this.#holder])
  }

  async purge(limit: number): Promise<number> {
    if (this.#offset?.doubt !== undefined) return 0
    const { now, ran } = this.#times()
    await this.#link.run(this.#statements.ran, [ran])
    return this.#purging.purge(limit, now, ran)
  }

  silentSince(time: number): number {
    return this.#link.silentFor(this.#clock.now() - time)
  }

  async now(): Promise<number> {
    return (await this.#link.readClock()) + Date.now()
  }

  close(): Promise<void> {
    return this.#link.close()
  }

  /** A caller whose try found nothing to use reads it: somebody else has used it, or it is not there. */
  async #use(
    statement: Statement,
    kind: string,
    key: string,
    attempt: string,
    values: readonly unknown[],
  ): Promise<{ first: boolean; entry: Entry } | undefined> {
    const [short] = keyColumns(key)
    await this.#requireSure(kind, key)
    const { rows } = await this.#link.run(statement, [kind, short, this.#now(), attempt, ...values])
    if (rows[0]) return { first: true, entry: toEntry(rows[0] as RecordRow) }
    const entry = await this.find(kind, key)
    return entry && { first: false, entry }
  }

  /** `live`: by all tries; `removed`: by the last one, expired records too. */
  async #remove(
    statement: Statement,
    values: readonly unknown[],
  ): Promise<{ readonly live: number; readonly removed: number }> {
    const attempt = drawAttempt()
    const { rows, triesBefore } = await this.#link.run(statement, [...values, attempt])
    const [note] =
      rows.length > 0 || triesBefore === 0
        ? rows
        : (await this.#link.run(this.#statements.removed, [attempt])).rows
    return { live: Number(note?.['live'] ?? 0), removed: Number(note?.['removed'] ?? 0) }
  }

  /** Nothing is used up that is refused afterwards. Rejects with a Fault as `find` does. */
  async #requireSure(kind: string, key: string): Promise<void> {
    if (this.#offset?.doubt !== undefined) await this.find(kind, key)
  }

  async #has(statement: Statement, values: readonly unknown[]): Promise<boolean> {
    return (await this.#link.run(statement, values)).rows.length > 0
  }

  #now(): number {
    return Math.floor(this.#clock.now())
  }

  #times(): { readonly now: number; readonly ran: number } {
    return { now: this.#now(), ran: this.#ranBefore + Math.floor(this.#clock.monotonic() - this.#openedAt) }
  }
}

const indexColumns = (where: IndexValues): readonly (string | null)[] =>
  indexesOf(where).map((index) => indexColumn(where[index]))

/** The columns of a new record, in the order of the statement. */
function recordColumns(record: NewRecord, attempt: string): readonly unknown[] {
  const { kind, value, expiresAt, indexes = {} } = record
  const marks = STORE_INDEXES.map((index) => indexColumn(indexes[index]))
  return [kind, ...keyColumns(record.key), JSON.stringify(value), attempt, wholeTime(expiresAt), ...marks]
}

const COLUMN_COUNT = recordColumns({ kind: '', key: '', value: {} }, '').length
