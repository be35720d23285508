import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { newSecret } from '../kernel/ids.ts'
import { StoreError } from './store-error.ts'

/**
 * The marker: a small file beside a store that tells that the folder has one, and which file it is. Without it nobody
 * could tell a folder that never had a store from one that has lost it, and a new, empty store would take its place, in
 * which nothing is revoked (T5.12). It is not named like the files of the database, so that it is not removed with them.
 */
export const markerOf = (path: string): string => join(dirname(path), 'store-marker.json')

/** Tells a file from every other that exists at the same time; undefined if there is none at the path. */
export function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

/** What a marker says: the identity of the store's file. Undefined if there is none. */
function readMarker(path: string): string | undefined {
  try {
    return String((JSON.parse(readFileSync(markerOf(path), 'utf8')) as { file?: unknown }).file)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    // Cut short, or changed by hand: there was one all the same.
    if (thrown instanceof SyntaxError || thrown instanceof TypeError) return ''
    throw thrown
  }
}

/** Marks the folder of a store that is there. The marker appears whole or not at all. */
export function markStore(path: string): void {
  const file = identityOf(path)
  if (file === undefined || readMarker(path) === file) return
  const marker = markerOf(path)
  const draft = `${marker}.${newSecret(9)}`
  try {
    writeFileSync(draft, `${JSON.stringify({ file, means: MEANING })}\n`, { mode: 0o600, flag: 'wx' })
    flush(draft)
    renameSync(draft, marker)
    flush(dirname(marker))
  } finally {
    rmSync(draft, { force: true })
  }
}

const MEANING = 'This folder has a store. Remove this file only to begin with an empty one on purpose.'

/** To the disk. */
function flush(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** What to do about a store that is lost or damaged. */
export const wayOut = (path: string): string =>
  `Stop every process that uses it and restore a backup to ${path}. To begin with an empty store on purpose, move what ` +
  `is left of it away and remove ${markerOf(path)}: then users log in again, consents and stored clients and users are ` +
  'lost, and so is every revocation: replace the signing keys too (`postern keys rotate --compromised`).'

/** Throws StoreError if the folder had a store and its file is gone, or was emptied. True if there was one. */
export function requireNotLost(path: string): boolean {
  const marked = readMarker(path) !== undefined || existsSync(`${path}-wal`)
  if (!marked) return false
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size !== undefined && size > 0) return true
  throw new StoreError(
    `The store ${path} is ${size === 0 ? 'empty' : 'gone'}, though this folder had one. ${wayOut(path)}`,
  )
}

/** Throws StoreError if the file is another than the one that the service was started with. */
export function requireSame(path: string): void {
  const marked = readMarker(path)
  if (marked === undefined || marked === identityOf(path)) return
  throw new StoreError(
    `The store ${path} is another file than the one that the service was started with (${basename(markerOf(path))}). ` +
      'If you have just restored a backup, start the service: it examines the file, and takes it over.',
  )
}
