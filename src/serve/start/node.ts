/** This node among those that share a store: its name, and the facts that the others learn of it. */
import cluster from 'node:cluster'
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { isShared, type NodeFacts } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { State } from '../parts/state.ts'
import { VERSION } from '../parts/version.ts'
import { SETTINGS } from './settings.ts'

const ID_BYTES = 9
const VARIABLE = 'POSTERN_NODE_ID'

/** The processes of a node inherit it by their environment. A service that another one has started is a node of its own. */
const inherited = cluster.isWorker ? process.env[VARIABLE] : undefined

/** Drawn at each start. It is in the lines of the log and in the list of nodes. */
const NODE_ID = inherited ?? newSecret(ID_BYTES)
process.env[VARIABLE] = NODE_ID

/** Undefined where there is one node only. */
export const nodeIdOf = (configuration: Pick<Configuration, 'issuers' | 'store'>): string | undefined =>
  !isSidecar(configuration) && isShared(configuration.store) ? NODE_ID : undefined

interface NodeParts {
  /** Address and port of the public listener. */
  readonly address: string
  readonly state: Pick<State, 'clock'> & { readonly doubts: Pick<State['doubts'], 'clock' | 'contents'> } & {
    readonly feed: Pick<State['feed'], 'age'>
  }
  readonly machine: Clock
}

/** The facts of this node, with a configuration. */
export const nodeFacts = (
  configuration: Configuration,
  { state, machine, address }: NodeParts,
): NodeFacts => ({
  id: NODE_ID,
  host: hostname(),
  address,
  version: VERSION,
  config: digestForNodes(configuration),
  workers: countWorkers(configuration.workers),
  clockOffset: Math.round(state.clock.now() + (state.doubts.clock ?? 0) - machine.now()) / 1000,
  clockDoubt: Math.round(state.doubts.clock ?? 0),
  contentsDoubted: state.doubts.contents !== undefined,
  feedAge: Math.round(state.feed.age),
})

const DIGEST_CHARACTERS = 12

/**
 * The digest of a configuration, without what each node has of its own: its addresses, its folders, and the files of
 * its anchors.
 */
export function digestForNodes(configuration: Configuration): string {
  const shared = SETTINGS.added.trail?.withoutOwn(configuration) ?? configuration
  const { server, admin } = configuration
  const own = {
    data: undefined,
    server: { ...server, listen: undefined },
    admin: { ...admin, listen: undefined, probes: undefined },
  }
  const text = JSON.stringify({ ...shared, ...own })
  return createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARACTERS)
}
