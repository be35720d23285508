import type { Store } from '../../src/base/contracts/records/store.ts'
import type { Clock } from '../../src/base/kernel/clock.ts'
import type { postgresOf } from '../../src/extensions/postgres/schema.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'
import type { StoreSection } from '../../src/state/stores/added-kinds.ts'
import type { StoreConfig } from '../../src/state/stores/schema.ts'
import { drawSchema, sharedPostgres } from './postgres.ts'
import { sealKey } from './seal-key.ts'

type Section = ReturnType<typeof postgresOf>

/** A section of kind `postgres`, as a configuration holds it: its schema names the kinds of the core alone. */
export type SharedStore = StoreConfig & Section

/** The section `store` of nodes that share a store of their own. */
export async function sharedStore(more: Partial<Section> = {}): Promise<SharedStore> {
  const cluster = await sharedPostgres()
  const section: StoreSection & Section = {
    ...{ kind: 'postgres', url: cluster.url(), schema: drawSchema(), connections: 2 },
    seal: [sealKey('test')],
    ...{ deadline: 2000, maxAge: 15 * 60_000, migrate: 'auto', preparedStatements: true, ...more },
  }
  return section as StoreSection as SharedStore
}

/** Opens it as another node does. */
export const openShared = (store: SharedStore, clock: Clock): Promise<Store> =>
  SETTINGS.added.stores.get(store.kind)!.open(store, clock, {})

/** A change of a configuration: for the option `change` of a service under test. */
export const onStore =
  (store: StoreConfig) =>
  (configuration: Configuration): Configuration => ({ ...configuration, store })
