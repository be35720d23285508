/** `examine-program PATH`: examines the file of a store (open-store.ts), and changes nothing in it. */
import { DatabaseSync } from 'node:sqlite'
import type { Examined } from './open-store.ts'
import { describeDamage, describeTrouble } from './store-error.ts'

const LOCK_TIMEOUT = 5000

/** What is wrong with the pages of a database, in SQLite's words; undefined if nothing is. */
function findDamage(path: string): string | undefined {
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT })
    try {
      const [found] = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {})
      return found === 'ok' ? undefined : String(found).replaceAll('\n', ' ')
    } finally {
      db.close()
    }
  } catch (thrown) {
    // Other troubles are told by whoever opens it.
    return describeDamage(thrown) === 'lasting' ? describeTrouble(thrown) : undefined
  }
}

process.stdout.write(JSON.stringify({ damage: findDamage(process.argv[2] ?? '') } satisfies Examined))
