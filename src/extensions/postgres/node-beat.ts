/** The nodes that share a store learn of each other. */
import type { JoinedNode, JoiningNode, LiveNodes, NodeFacts } from '../../base/contracts/records/store.ts'
import { type After, after as systemAfter } from '../../base/kernel/clock.ts'
import { toFault } from '../../base/kernel/faults.ts'

/** The facts of a node as the store has them. */
export interface StoredNode extends NodeFacts {
  /** The version of the store's tables that it knows. */
  readonly schema: number
}

export interface SeenNode extends StoredNode {
  /** When it was last seen, in milliseconds since the epoch, by the store's clock. */
  readonly seenAt: number
}

interface NodeBeatParts extends JoiningNode {
  readonly nodes: {
    /** Says that this node is alive, and describes it. */
    beat(facts: NodeFacts): Promise<LiveNodes>
    /** A node ends: nobody counts it any more. */
    leave(id: string): Promise<void>
  }
  readonly after?: After
}

/** How often a node says that it is alive, in milliseconds. It counts as dead after five such times. */
const INTERVAL = 2000
/** How many beats in a row must find all nodes with one configuration. */
const AGREED = 8

/** Every two seconds, the other nodes of the store learn that this one is alive and what it is. */
export class NodeBeat implements JoinedNode {
  readonly #parts: NodeBeatParts
  readonly #after: After
  #live: LiveNodes | undefined
  /** Beats in a row at which all nodes had one configuration. */
  #agreements = 0
  /** Whether the work that follows the agreement is done. */
  #isSettled = false
  #cancel: () => void = () => undefined
  #beating: Promise<void> = Promise.resolve()
  #stopped: Promise<void> | undefined

  constructor(parts: NodeBeatParts) {
    this.#parts = parts
    this.#after = parts.after ?? systemAfter
    this.#next(0)
  }

  get live(): LiveNodes | undefined {
    return this.#live
  }

  changed(): void {
    this.#agreements = 0
    this.#isSettled = false
  }

  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop())
  }

  async #stop(): Promise<void> {
    this.#cancel()
    await this.#beating
    const { nodes, facts } = this.#parts
    try {
      await nodes.leave(facts().id)
    } catch {
      // It is forgotten after ten seconds in any case.
    }
  }

  #next(ms: number): void {
    if (this.#stopped !== undefined) return
    this.#cancel = this.#after(ms, () => {
      this.#beating = this.#beat().then(() => this.#next(INTERVAL))
    })
  }

  async #beat(): Promise<void> {
    const { nodes, facts, failed } = this.#parts
    try {
      this.#live = await nodes.beat(facts())
      await this.#tellAgreement(this.#live)
    } catch (thrown) {
      this.changed()
      // The change feed tells operators that the store is out of reach.
      if (toFault(thrown).code === 'internal') failed(thrown)
    }
  }

  /** A node that dies counts for ten seconds more, and may have issued something until then. */
  async #tellAgreement({ configs }: LiveNodes): Promise<void> {
    if (configs !== 1) this.changed()
    else this.#agreements += 1
    if (this.#agreements < AGREED || this.#isSettled) return
    const isSettled = await this.#parts.agreed()
    // Unless another configuration was put in force meanwhile.
    this.#isSettled = isSettled && this.#agreements > 0
  }
}
