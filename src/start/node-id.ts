/** The name of this node among those that share a store: in its lines of the log, and in the list of nodes. */
import { newSecret } from '../kernel/ids.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'

const ID_BYTES = 9

/** Drawn at each start. The processes of a node inherit it by their environment. */
export const NODE_ID = (process.env['POSTERN_NODE_ID'] ??= newSecret(ID_BYTES))

/** Undefined where there is one node only. */
export const nodeOf = (configuration: Pick<Configuration, 'issuers' | 'store'>): string | undefined =>
  !isSidecar(configuration) && configuration.store.kind === 'postgres' ? NODE_ID : undefined
