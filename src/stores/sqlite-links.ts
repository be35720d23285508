import { SqliteLink } from './sqlite-link.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import type { TroubleListener } from './trouble.ts'

/**
 * The threads of one store. One does all that is asked, until it holds up a reading: it waits for a lock, a disk or a long
 * list then. From then on a second one reads: in WAL mode a reading waits for no lock and no flush, so the change feed is
 * read in time (C11.7.2). Most processes never need it, and it costs each 20 MB and 50 ms of a processor.
 */
export class SqliteLinks {
  readonly #plan: SqlitePlan
  readonly #onTrouble: TroubleListener
  readonly #writes: SqliteLink
  /** Set when it is open. */
  #reads: SqliteLink | undefined
  #opening: Promise<void> | undefined
  #told: string | undefined

  private constructor(plan: SqlitePlan, onTrouble: TroubleListener) {
    this.#plan = plan
    this.#onTrouble = onTrouble
    this.#writes = new SqliteLink(plan, {
      onTrouble: () => this.#tellTrouble(),
      onHeldUp: () => this.#openReads(),
    })
  }

  /** Makes or migrates the file. Rejects with StoreError if it cannot be used (T7). */
  static async open(plan: SqlitePlan, onTrouble: TroubleListener = () => undefined): Promise<SqliteLinks> {
    const links = new SqliteLinks(plan, onTrouble)
    await links.#writes.open()
    return links
  }

  get trouble(): string | undefined {
    return this.#writes.trouble ?? this.#reads?.trouble
  }

  get refusesWrites(): string | undefined {
    return this.#writes.refusesWrites
  }

  get patience(): number | undefined {
    return this.#writes.deadline
  }

  readonly write: SqliteLink['request'] = (verb, ...args) => this.#writes.request(verb, ...args)

  readonly read: SqliteLink['read'] = (verb, ...args) => (this.#reads ?? this.#writes).read(verb, ...args)

  /** Resolves when the threads have ended. Earlier requests are still answered. Later ones are rejected. */
  async close(): Promise<void> {
    await Promise.all([this.#writes.close(), this.#opening?.then(() => this.#reads?.close())])
  }

  /** If that fails, the readings wait on, and the next one that is held up tries again. Files in trouble are left alone. */
  #openReads(): void {
    if (this.#opening !== undefined || this.#writes.trouble !== undefined) return
    const reads = new SqliteLink(this.#plan, { onTrouble: () => this.#tellTrouble() })
    this.#opening = reads.open().then(
      () => {
        this.#reads = reads
        this.#writes.handReadingsTo(reads)
      },
      () => {
        this.#opening = undefined
      },
    )
  }

  /** What is wrong with both is told once. */
  #tellTrouble(): void {
    const { trouble } = this
    if (trouble === this.#told) return
    this.#told = trouble
    this.#onTrouble(trouble)
  }
}
