/** How many processes share the limits of a configuration: those of this node, or of all nodes that share its store. */
import type { Nodes } from '../contracts/store.ts'
import { type After, after as systemAfter } from '../kernel/clock.ts'

/** Milliseconds between two looks. A node that dies is counted for ten seconds more. */
const INTERVAL = 10_000

export class LiveProcesses {
  readonly #own: number
  readonly #nodes: Pick<Nodes, 'live'> | undefined
  readonly #after: After
  #count: number
  #cancel: () => void = () => undefined
  #stopped = false
  /** Called when the number has changed. */
  changed: (count: number) => void = () => undefined

  /** @param own processes of this node that serve */
  constructor(own: number, nodes: Pick<Nodes, 'live'> | undefined, after: After = systemAfter) {
    this.#own = own
    this.#nodes = nodes
    this.#after = after
    this.#count = own
    if (nodes !== undefined) this.#next(0)
  }

  get count(): number {
    return this.#count
  }

  stop(): void {
    this.#stopped = true
    this.#cancel()
  }

  #next(ms: number): void {
    if (!this.#stopped)
      this.#cancel = this.#after(ms, () => void this.#look().then(() => this.#next(INTERVAL)))
  }

  /** While the store is out of reach, the last number counts. */
  async #look(): Promise<void> {
    const live = await this.#nodes?.live().catch(() => undefined)
    if (live === undefined || this.#stopped) return
    const count = Math.max(this.#own, live.workers)
    if (count === this.#count) return
    this.#count = count
    this.changed(count)
  }
}
