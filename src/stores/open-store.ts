import type { Store } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { planSqlite, type StoreConfig } from './config.ts'

/**
 * Opens the store of a configuration; `data` is the folder for keys and state. Only the kind in use is loaded.
 * Rejects with StoreError if it is not fit to be used (T7): damaged, of a newer version, not writable.
 */
export async function openStore(config: StoreConfig, data: string, clock: Clock): Promise<Store> {
  if (config.kind === 'memory') {
    const { MemoryStore } = await import('./memory.ts')
    return new MemoryStore(clock)
  }
  const { SqliteStore } = await import('./sqlite.ts')
  return SqliteStore.open(planSqlite(config, data), clock)
}
