/** SQLite that may take its time, since other tests hold the machine up. */
import { atEnd } from './shared.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import type { SqlitePlan } from '../../src/state/stores/sqlite/sqlite-file.ts'
import { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'

/** The section `store` of a configuration. */
export const PATIENT_STORE = { kind: 'sqlite', synchronous: 'normal', deadline: 10_000 } as const

/** Opens the file at `path` until the test ends. */
export async function sqliteAt(path: string, options: Partial<SqlitePlan> = {}): Promise<SqliteStore> {
  const { synchronous, deadline } = PATIENT_STORE
  const store = await SqliteStore.open(
    { path, synchronous, maxSize: undefined, deadline, ...options },
    systemClock,
  )
  atEnd(() => store.close())
  return store
}
