import { existsSync, fsyncSync, linkSync, openSync, closeSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { newSecret } from '../kernel/ids.ts'
import { checkSchema } from './sqlite-file.ts'
import { describeTrouble, StoreError } from './store-error.ts'

const PRIVATE_FILE = 0o600
// A backup waits for a lock longer than a call may.
const TIMEOUT = 10_000

/** To the disk, the file and its name. */
function flush(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * VACUUM INTO reads everything in one transaction, which in WAL keeps nobody from writing meanwhile: the copy is the
 * store of one moment, and compact. It writes into a file only if that is empty, which is how it gets its mode.
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
    const [found] = Object.values(db.prepare('PRAGMA quick_check').get() ?? {})
    if (found !== 'ok') throw new StoreError(`the copy is damaged: ${String(found)}`)
  } finally {
    db.close()
  }
}

function explain(thrown: unknown, source: string, target: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  if (thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST')
    return new StoreError(`${target} exists already, and is left as it is. Name a new file.`)
  const reason = describeTrouble(thrown) ?? (thrown instanceof Error ? thrown.message : String(thrown))
  return new StoreError(`The store ${source} cannot be copied to ${target}: ${reason}`, { cause: thrown })
}

/**
 * Copies the store of one moment, live or not, into a new file that only its owner may read, and checks the copy.
 * The file appears whole or not at all. Throws StoreError, with nothing left behind; never overwrites. Blocks: for the
 * command line.
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
    // Fails if the name has been taken meanwhile.
    linkSync(draft, target)
    flush(dirname(target))
  } catch (thrown) {
    throw explain(thrown, source, target)
  } finally {
    rmSync(draft, { force: true })
  }
}
