import type { Store } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { planSqlite, type StoreConfig } from './config.ts'
import type { TroubleTold } from './sqlite-link.ts'
import type { StoreError } from './store-error.ts'

/**
 * Opens the store of a configuration; `data` is the folder for keys and state. Only the kind in use is loaded.
 * Rejects with StoreError if it is not fit to be used (T7): damaged, of a newer version, not writable.
 */
export async function openStore(
  config: StoreConfig,
  data: string,
  clock: Clock,
  told?: TroubleTold,
): Promise<Store> {
  if (config.kind === 'memory') {
    const { MemoryStore } = await import('./memory.ts')
    return new MemoryStore(clock)
  }
  const { SqliteStore } = await import('./sqlite.ts')
  return SqliteStore.open(planSqlite(config, data), clock, told)
}

/**
 * Examines the store before anything opens it; the service does this once, when it starts. Rejects with StoreError if
 * it is damaged, or gone though the folder had one. A large one is examined further while it serves: `later` resolves
 * with the damage that was found then, if any.
 */
export async function admitStore(
  config: StoreConfig,
  data: string,
): Promise<{ later: Promise<StoreError | undefined> }> {
  if (config.kind === 'memory') return { later: Promise.resolve(undefined) }
  const { admitSqlite } = await import('./admit-sqlite.ts')
  return admitSqlite(planSqlite(config, data))
}
