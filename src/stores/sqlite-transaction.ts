import type { DatabaseSync } from 'node:sqlite'

const isOpen = ({ isTransaction }: DatabaseSync): boolean => isTransaction

/**
 * All writes of `work`, or none; a part of the transaction that is open, if one is. The write lock is taken first: a
 * transaction that reads first may fail at once. Throws as `work` does, and SQLite's errors.
 */
export function atOnce<T>(db: DatabaseSync, work: () => T): T {
  if (isOpen(db)) return work()
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (thrown) {
    // SQLite itself ends the transaction after some errors (a full disk).
    if (isOpen(db)) db.exec('ROLLBACK')
    throw thrown
  }
}
