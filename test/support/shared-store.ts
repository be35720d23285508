import type { Configuration } from '../../src/operate/settings/configuration.ts'
import type { StoreConfig } from '../../src/state/stores/schema.ts'
import { drawSchema, sharedPostgres } from './postgres.ts'
import { sealKey } from './seal-key.ts'

type Shared = StoreConfig & { readonly kind: 'postgres' }

/** The section `store` of nodes that share a store of their own. */
export async function sharedStore(more: Partial<Shared> = {}): Promise<Shared> {
  const cluster = await sharedPostgres()
  return {
    ...{ kind: 'postgres', url: cluster.url(), schema: drawSchema(), connections: 2 },
    seal: [sealKey('test')],
    ...{ deadline: 2000, maxAge: 15 * 60_000, migrate: 'auto', preparedStatements: true, ...more },
  }
}

/** A change of a configuration: for the option `change` of a service under test. */
export const onStore =
  (store: StoreConfig) =>
  (configuration: Configuration): Configuration => ({ ...configuration, store })
