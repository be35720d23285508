/**
 * `examine-program PATH` looks for damage in a store file and changes nothing. open-store.ts starts it as a process.
 */
import '../../base/kernel/no-debugger.ts'
import { DatabaseSync } from 'node:sqlite'
import type { Examined } from './open-store.ts'
import { describeDamage, describeTrouble, quickCheck } from './link/store-error.ts'

/** How long it waits for a lock, in milliseconds. */
const LOCK_TIMEOUT = 5000

function findDamage(path: string): string | undefined {
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT })
    try {
      return quickCheck(db)
    } finally {
      db.close()
    }
  } catch (thrown) {
    // The process that opens the store reports all other errors.
    return describeDamage(thrown) === 'lasting' ? describeTrouble(thrown) : undefined
  }
}

process.stdout.write(JSON.stringify({ damage: findDamage(process.argv[2] ?? '') } satisfies Examined))
