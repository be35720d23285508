/** This node among those that share a store: its name, and how the others learn that it is alive. */
import cluster from 'node:cluster'
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { LiveNodes, NodeFacts, Nodes } from '../../base/contracts/records/store.ts'
import { type After, after as systemAfter, type Clock } from '../../base/kernel/clock.ts'
import { toFault } from '../../base/kernel/faults.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { State } from '../parts/state.ts'
import { VERSION } from '../parts/version.ts'

const ID_BYTES = 9
const VARIABLE = 'POSTERN_NODE_ID'

/** The processes of a node inherit it by their environment. A service that another one has started is a node of its own. */
const inherited = cluster.isWorker ? process.env[VARIABLE] : undefined

/** Drawn at each start. It is in the lines of the log and in the list of nodes. */
const NODE_ID = inherited ?? newSecret(ID_BYTES)
process.env[VARIABLE] = NODE_ID

/** Undefined where there is one node only. */
export const nodeIdOf = (configuration: Pick<Configuration, 'issuers' | 'store'>): string | undefined =>
  !isSidecar(configuration) && configuration.store.kind === 'postgres' ? NODE_ID : undefined

interface NodeBeatParts {
  readonly nodes: Nodes
  /** Address and port of the public listener. */
  readonly address: string
  readonly state: Pick<State, 'clock'> & { readonly doubts: Pick<State['doubts'], 'clock' | 'contents'> } & {
    readonly feed: Pick<State['feed'], 'age'>
  }
  readonly machine: Clock
  readonly recorder: Pick<Recorder, 'note'>
  /**
   * Called when all nodes have had the same configuration for a while. Once it has resolved with true, it is not called
   * again for this agreement; until then at each beat. If it rejects, only after another while.
   */
  readonly agreed?: () => Promise<boolean>
  readonly after?: After
}

/** How often a node says that it is alive, in milliseconds. It counts as dead after five such times. */
const INTERVAL = 2000
/** How many beats in a row must find all nodes with one configuration. */
const AGREED = 8
const DIGEST_CHARACTERS = 12

/** Every two seconds, the other nodes of the store learn that this one is alive and what it is. */
export class NodeBeat {
  readonly #parts: NodeBeatParts
  readonly #after: After
  #configuration: Configuration
  #live: LiveNodes | undefined
  /** Beats in a row at which all nodes had one configuration. */
  #agreements = 0
  /** Whether the work that follows the agreement is done. */
  #isSettled = false
  #cancel: () => void = () => undefined
  #beating: Promise<void> = Promise.resolve()
  #stopped: Promise<void> | undefined

  constructor(configuration: Configuration, parts: NodeBeatParts) {
    this.#configuration = configuration
    this.#parts = parts
    this.#after = parts.after ?? systemAfter
    this.#next(0)
  }

  /** The nodes that were alive at the last beat; undefined before the first one. */
  get live(): LiveNodes | undefined {
    return this.#live
  }

  /** The digest of the configuration in force: nodes with the same one serve the same. */
  get digest(): string {
    return digestOf(this.#configuration)
  }

  /** The configuration that is in force from now on. */
  adopt(configuration: Configuration): void {
    this.#configuration = configuration
    this.#disagree()
  }

  /** The others stop counting this node. Never rejects. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop())
  }

  async #stop(): Promise<void> {
    this.#cancel()
    await this.#beating
    // It is forgotten after ten seconds in any case.
    await this.#parts.nodes.leave(NODE_ID).catch(() => undefined)
  }

  #next(ms: number): void {
    if (this.#stopped !== undefined) return
    this.#cancel = this.#after(ms, () => {
      this.#beating = this.#beat().then(() => this.#next(INTERVAL))
    })
  }

  async #beat(): Promise<void> {
    try {
      this.#live = await this.#parts.nodes.beat(this.#facts())
      await this.#tellAgreement(this.#live)
    } catch (thrown) {
      this.#disagree()
      // The change feed tells operators that the store is out of reach.
      if (toFault(thrown).code === 'internal')
        this.#parts.recorder.note('error', 'node_beat_failed', { cause: thrown })
    }
  }

  /** A node that dies counts for ten seconds more, and may have issued something until then. */
  async #tellAgreement({ configs }: LiveNodes): Promise<void> {
    if (configs !== 1) this.#disagree()
    else this.#agreements += 1
    if (this.#agreements < AGREED || this.#isSettled) return
    const isSettled = (await this.#parts.agreed?.()) ?? true
    // Unless another configuration was put in force meanwhile.
    this.#isSettled = isSettled && this.#agreements > 0
  }

  #disagree(): void {
    this.#agreements = 0
    this.#isSettled = false
  }

  #facts(): NodeFacts {
    const { state, nodes, machine, address } = this.#parts
    return {
      id: NODE_ID,
      host: hostname(),
      address,
      version: VERSION,
      schema: nodes.knownSchema,
      config: this.digest,
      workers: countWorkers(this.#configuration.workers),
      clockOffset: Math.round(state.clock.now() + (state.doubts.clock ?? 0) - machine.now()) / 1000,
      clockDoubt: Math.round(state.doubts.clock ?? 0),
      contentsDoubted: state.doubts.contents !== undefined,
      feedAge: Math.round(state.feed.age),
    }
  }
}

/**
 * The digest of a configuration, without what each node has of its own: its addresses, its folders, and the files of
 * its anchors.
 */
function digestOf(configuration: Configuration): string {
  const { server, admin, audit } = configuration
  const anchors = audit.anchors.map(({ log, file }) => ({ log, file: file !== undefined }))
  const own = {
    data: undefined,
    server: { ...server, listen: undefined },
    admin: { ...admin, listen: undefined, probes: undefined },
    audit: { ...audit, folder: undefined, anchors },
  }
  const text = JSON.stringify({ ...configuration, ...own })
  return createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARACTERS)
}
