/** The name of this node among those that share a store: in its lines of the log, and in the list of nodes. */
import cluster from 'node:cluster'
import { newSecret } from '../kernel/ids.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'

const ID_BYTES = 9
const VARIABLE = 'POSTERN_NODE_ID'

/** The processes of a node inherit it by their environment. A service that another one has started is a node of its own. */
const inherited = cluster.isWorker ? process.env[VARIABLE] : undefined

/** Drawn at each start. */
export const NODE_ID = inherited ?? newSecret(ID_BYTES)
process.env[VARIABLE] = NODE_ID

/** Undefined where there is one node only. */
export const nodeOf = (configuration: Pick<Configuration, 'issuers' | 'store'>): string | undefined =>
  !isSidecar(configuration) && configuration.store.kind === 'postgres' ? NODE_ID : undefined
