/**
 * The lock of a trail's folder, and of the data folder where no trail is kept: one service, or one command while no service
 * runs, changes what is in it and writes the trail (C12.1.7, C12.4). The worker processes of a service send their records to it.
 *
 * It is a lock of the operating system, held by an open SQLite file in an exclusive transaction. So it ends with the
 * process that holds it, however that ends; there is no stale lock to be found and no process id to be mistaken. Trap: a
 * POSIX lock of a process ends when that process closes any descriptor of the file, so nothing else may open
 * `writer.lock`; SQLite takes care of its own descriptors.
 */
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { hasCode } from '../../base/kernel/thrown.ts'

/** The facts about itself that a service which holds the lock tells commands. */
export interface ServiceAnnouncement {
  /** The URL of its admin listener. */
  readonly adminUrl: string
  /** The data folder that has the file with its token. Absent where the configuration gives the token. */
  readonly data?: string
}

/** As it was left in the folder, with the machine or container that the address is of. */
export type Announced = ServiceAnnouncement & { readonly host: string }

export interface TrailLock {
  /** Lets commands know of the service that holds the lock. Throws the system's error. */
  announce(service: ServiceAnnouncement): void
  /** May be called again. */
  release(): void
  /** It ends with the process only: work under it may still run. */
  keep(): void
}

const LOCK_FILE = 'writer.lock'
const SERVICE_FILE = 'service.json'
const SQLITE_BUSY = 5
const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700

const isBusy = (thrown: unknown): boolean =>
  thrown instanceof Error && 'errcode' in thrown && thrown.errcode === SQLITE_BUSY

/** Creates the file for its owner only. A file that is there is not opened: see the trap above. */
function createOnce(file: string): void {
  try {
    closeSync(openSync(file, 'wx', PRIVATE_FILE))
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown
  }
}

/**
 * Takes the lock of a trail's folder, which is created if it is missing. Undefined if another process, or another part
 * of this one, holds it. Throws the system's or SQLite's error if the folder cannot be used.
 */
export function tryLock(folder: string): TrailLock | undefined {
  mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER })
  const file = join(folder, LOCK_FILE)
  createOnce(file)
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (thrown) {
    db.close()
    if (isBusy(thrown)) return undefined
    throw thrown
  }
  // A service that was killed may have left this file behind.
  const service = join(folder, SERVICE_FILE)
  rmSync(service, { force: true })
  let isKept = false
  return {
    announce: (announcement) => {
      const announced: Announced = { host: hostname(), ...announcement }
      writeFileSync(service, JSON.stringify({ pid: process.pid, ...announced }), { mode: PRIVATE_FILE })
    },
    keep: () => {
      isKept = true
    },
    release: () => {
      if (!db.isOpen || isKept) return
      rmSync(service, { force: true })
      db.close()
    },
  }
}

/** The announcement of the service that holds the lock; undefined if none has announced itself. */
export function announcedService(folder: string): Announced | undefined {
  try {
    const { adminUrl, host, data } = JSON.parse(readFileSync(join(folder, SERVICE_FILE), 'utf8')) as Record<
      keyof Announced,
      unknown
    >
    if (typeof adminUrl !== 'string' || typeof host !== 'string') return undefined
    return { adminUrl, host, ...(typeof data === 'string' && { data }) }
  } catch {
    return undefined
  }
}

/**
 * The same, if it still runs: a service that was killed has left its announcement behind, and another program may listen
 * at that address now.
 */
export function runningService(folder: string): Announced | undefined {
  const service = announcedService(folder)
  if (service === undefined) return undefined
  try {
    const lock = tryLock(folder)
    lock?.release()
    return lock === undefined ? service : undefined
  } catch {
    return undefined
  }
}
