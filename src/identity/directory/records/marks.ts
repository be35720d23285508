/**
 * Marks of the store: each disables one client or user of any layer, and grants nothing. They outlast the
 * configuration, which no command changes.
 *
 * `disabled_client`, by client id, and `disabled_user`, by user name: a MarkValue. Without index values, as the directory's
 * own records.
 */
import type { Client, People, User } from '../../../base/contracts/people/people.ts'
import type {
  Change,
  Entry,
  Feed,
  PageQuery,
  Store,
  StoredValue,
} from '../../../base/contracts/records/store.ts'
import { outsideBudgets } from '../../../base/kernel/store-budget.ts'
import { byKey } from '../../../base/kernel/key-order.ts'
import { DIRECTORY_TOPIC, everyRecord } from './stored-directory.ts'

const MARKS = { client: 'disabled_client', user: 'disabled_user' } as const

/** The kinds that can be marked. */
export type Markable = keyof typeof MARKS

const MARKABLE = Object.keys(MARKS) as readonly Markable[]

export const MARK_KINDS = Object.values(MARKS)

/** The kind of the records that mark clients, or users. */
export const markKindOf = (what: Markable): string => MARKS[what]

/** A type alias, because an interface is not assignable to StoredValue. */
export type MarkValue = {
  readonly name: string
  /** The subjects of a user: a user with one of these is disabled too, under any name. Empty for a client. */
  readonly subjects: readonly string[]
  /** When it was marked, in milliseconds since the epoch. */
  readonly since: number
}

export interface Mark extends MarkValue {
  readonly what: Markable
}

const markOf = (what: Markable, value: StoredValue): Mark => ({ what, ...(value as MarkValue) })

/** The marks among records, by the kind of these. */
export const marksIn = (records: Readonly<Record<string, readonly StoredValue[]>>): readonly Mark[] =>
  MARKABLE.flatMap((what) => (records[MARKS[what]] ?? []).map((value) => markOf(what, value)))

/** Rejects with Fault `identity_unavailable` if the store cannot be read. */
export async function* everyMark(store: Pick<Store, 'list'>): AsyncGenerator<Mark> {
  for (const what of MARKABLE)
    for await (const entry of everyRecord(store, MARKS[what])) yield markOf(what, entry.value)
}

/**
 * The marks over a page of names that are in order, by name. Rejects with Fault `identity_unavailable`.
 *
 * @param page the one that was asked for
 */
export async function marksAmong(
  store: Pick<Store, 'list'>,
  what: Markable,
  names: readonly string[],
  { limit, ...page }: PageQuery,
): Promise<ReadonlyMap<string, Entry>> {
  const last = names.at(-1)
  const found = new Map<string, Entry>()
  let { after } = page
  while (last !== undefined) {
    const marks: readonly Entry[] = await store.list(MARKS[what], { ...page, after, limit })
    for (const mark of marks) found.set(mark.key, mark)
    after = marks.at(-1)?.key
    if (marks.length < limit || after === undefined || byKey(after, last) >= 0) break
  }
  return found
}

/** The names and subjects that are marked, among some. */
export class MarkedNames {
  readonly #names: ReadonlySet<string>
  readonly #subjects: ReadonlySet<string>

  constructor(marks: Iterable<Mark>) {
    const all = [...marks]
    this.#names = new Set(all.map(({ what, name }) => `${what}\0${name}`))
    this.#subjects = new Set(all.flatMap(({ subjects }) => subjects))
  }

  client<T extends Pick<Client, 'id' | 'disabled'>>(client: T): T {
    return this.#names.has(`client\0${client.id}`) ? { ...client, disabled: true } : client
  }

  user<T extends Pick<User, 'username' | 'subject' | 'disabled'>>(user: T): T {
    const isMarked = this.#names.has(`user\0${user.username}`) || this.#subjects.has(user.subject)
    return isMarked ? { ...user, disabled: true } : user
  }
}

interface DisabledMarksParts {
  readonly store: Pick<Store, 'find' | 'list'>
  readonly feed: Pick<Feed, 'subscribe'>
}

/**
 * All marks, in memory: so people of the configuration log in while the store is out of reach. Which marks the change feed
 * announces are read again by the next look-up, which waits for that. Methods reject with Fault `identity_unavailable` if
 * they cannot be read then.
 */
export class DisabledMarks {
  readonly #store: DisabledMarksParts['store']
  #marks = new Map<string, Mark>()
  #named = new MarkedNames([])
  /** Announced, and not read since; by what they mark and its name. */
  readonly #stale = new Map<string, readonly [Markable, string]>()
  #isAllStale = true
  #reading: Promise<void> | undefined

  private constructor({ store, feed }: DisabledMarksParts) {
    this.#store = store
    feed.subscribe(DIRECTORY_TOPIC, {
      apply: ({ value }: Change) => this.#announced(value),
      reset: () => {
        this.#isAllStale = true
      },
    })
  }

  static async open(parts: DisabledMarksParts): Promise<DisabledMarks> {
    const marks = new DisabledMarks(parts)
    await marks.current()
    return marks
  }

  /** The names and subjects that are marked now. */
  async current(): Promise<MarkedNames> {
    while (this.#isAllStale || this.#stale.size > 0) {
      // Others may wait for it who have more time left than the caller that begins it.
      this.#reading ??= outsideBudgets(() => this.#read()).finally(() => {
        this.#reading = undefined
      })
      await this.#reading
    }
    return this.#named
  }

  #announced(value: StoredValue): void {
    if (value['mark'] !== true) return
    for (const what of MARKABLE) {
      const name = value[what]
      if (typeof name === 'string') this.#stale.set(`${what}\0${name}`, [what, name])
    }
  }

  async #read(): Promise<void> {
    const [isAll, announced] = [this.#isAllStale, [...this.#stale]]
    this.#isAllStale = false
    this.#stale.clear()
    try {
      if (isAll) await this.#readAll()
      else for (const [address, [what, name]] of announced) await this.#readOne(address, what, name)
    } catch (thrown) {
      this.#isAllStale ||= isAll
      for (const [address, mark] of announced) this.#stale.set(address, mark)
      throw thrown
    }
    this.#named = new MarkedNames(this.#marks.values())
  }

  async #readAll(): Promise<void> {
    const marks = await Array.fromAsync(everyMark(this.#store))
    this.#marks = new Map(marks.map((mark) => [`${mark.what}\0${mark.name}`, mark]))
  }

  async #readOne(address: string, what: Markable, name: string): Promise<void> {
    const entry = await this.#store.find(MARKS[what], name)
    if (entry === undefined) this.#marks.delete(address)
    else this.#marks.set(address, markOf(what, entry.value))
  }
}

/** People, without those whom marks disable. */
export class MarkedPeople implements People {
  readonly #people: People
  readonly #marks: Pick<DisabledMarks, 'current'>

  constructor(people: People, marks: Pick<DisabledMarks, 'current'>) {
    this.#people = people
    this.#marks = marks
  }

  async findClient(id: string): Promise<Client | undefined> {
    const marks = await this.#marks.current()
    const client = await this.#people.findClient(id)
    return client && marks.client(client)
  }

  async findUserByName(username: string): Promise<User | undefined> {
    // Also where nobody is found, so that the time does not show who exists (T3.9).
    const marks = await this.#marks.current()
    const user = await this.#people.findUserByName(username)
    return user && marks.user(user)
  }

  async findUserBySubject(subject: string): Promise<User | undefined> {
    const marks = await this.#marks.current()
    const user = await this.#people.findUserBySubject(subject)
    return user && marks.user(user)
  }
}
