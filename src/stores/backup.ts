import { existsSync, linkSync, openSync, closeSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { newSecret } from '../kernel/ids.ts'
import { checkSchema } from './sqlite-file.ts'
import { quickCheck, reasonOf, StoreError } from './store-error.ts'
import { flush } from './store-files.ts'
import { hasCode } from '../kernel/thrown.ts'

const PRIVATE_FILE = 0o600
// Milliseconds. A backup may wait for a lock longer than a call.
const TIMEOUT = 10_000

/**
 * VACUUM INTO reads everything in one transaction, so the copy shows one moment. In WAL mode, others can write
 * meanwhile. It accepts an existing file only if that file is empty: we create it first, to give it its mode.
 */
function copyInto(source: string, draft: string): void {
  const db = new DatabaseSync(source, { timeout: TIMEOUT })
  try {
    checkSchema(db, source)
    closeSync(openSync(draft, 'wx', PRIVATE_FILE))
    db.prepare('VACUUM INTO ?').run(draft)
  } finally {
    db.close()
  }
}

function verify(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    const damage = quickCheck(db)
    if (damage !== undefined) throw new StoreError(`the copy is damaged: ${damage}`)
  } finally {
    db.close()
  }
}

function explain(thrown: unknown, source: string, target: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  if (hasCode(thrown, 'EEXIST'))
    return new StoreError(`${target} exists already, and is left as it is. Name a new file.`)
  return new StoreError(`The store ${source} cannot be copied to ${target}: ${reasonOf(thrown)}`, {
    cause: thrown,
  })
}

/**
 * Copies a store into a new file that only its owner may read, and checks the copy. The service may run meanwhile.
 * The file appears complete or not at all, and nothing is overwritten. Throws StoreError and leaves nothing behind
 * then. Blocks the thread: for the command line.
 */
export function backUpSqlite(source: string, file: string): void {
  if (!existsSync(source)) throw new StoreError(`There is no store at ${source}: nothing to back up.`)
  const target = resolve(file)
  const draft = `${target}.${newSecret(9)}.part`
  try {
    if (existsSync(target)) throw Object.assign(new Error('there is a file'), { code: 'EEXIST' })
    copyInto(source, draft)
    verify(draft)
    flush(draft)
    // Fails if another file has taken the name meanwhile.
    linkSync(draft, target)
    flush(dirname(target))
  } catch (thrown) {
    throw explain(thrown, source, target)
  } finally {
    rmSync(draft, { force: true })
  }
}
