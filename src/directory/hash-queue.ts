/** Which of the two queues a job waits in. */
export type Line = 'ordinary' | 'doubtful'

export interface HashQueueSizes {
  /** Jobs that run at once, of both lines together. */
  readonly concurrent: number
  /** Jobs that may wait in the ordinary line. */
  readonly ordinary: number
  /** Jobs that may wait in the doubtful line. */
  readonly doubtful: number
}

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
 * Of the jobs that run at once, at most half come from the doubtful line (but one, if only one may run). One owner
 * has at most half of the places in the ordinary line.
 */
export class HashQueue {
  readonly #sizes: HashQueueSizes
  readonly #doubtfulConcurrent: number
  readonly #ordinary: Waiter[] = []
  readonly #doubtful: Waiter[] = []
  /** By owner, in the ordinary line. */
  readonly #waitingOf = new Map<string, number>()
  #running = 0
  #doubtfulRunning = 0

  constructor(sizes: HashQueueSizes) {
    this.#sizes = sizes
    this.#doubtfulConcurrent = Math.max(1, Math.floor(sizes.concurrent / 2))
  }

  /** How many jobs run or wait before a job that joins the ordinary line now. */
  get ahead(): number {
    return this.#running + this.#ordinary.length
  }

  /** How many jobs wait, in both lines. */
  get waiting(): number {
    return this.#ordinary.length + this.#doubtful.length
  }

  /** Whether a job of the line would run at once. */
  isFree(line: Line): boolean {
    if (this.#running >= this.#sizes.concurrent) return false
    return (
      line === 'ordinary' || (this.#doubtfulRunning < this.#doubtfulConcurrent && this.#ordinary.length === 0)
    )
  }

  /** Whether a job of the line can neither run nor wait. */
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
