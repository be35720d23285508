/**
 * How a command finds the service that runs on a data folder. A service announces its admin listener next to the lock that it
 * holds: the lock of its trail, or, where none is kept, that of its data folder (operate/trail/lock.ts). An announcement
 * counts only while the lock is held: otherwise the token would go to any program that listens at the address meanwhile.
 */
import type { Buffer } from 'node:buffer'
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { type Announced, type ServiceAnnouncement, runningService, type TrailLock, tryLock } from './lock.ts'
import { usualTrail } from '../settings/trail-settings.ts'
import { after as systemAfter } from '../../base/kernel/clock.ts'
import { isAnothers, userName } from '../../base/files/file-modes.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { faultOfToken, NotTextError, textOfBytes, withoutLineEnd } from '../../base/files/text-file.ts'
import { hasCode } from '../../base/kernel/thrown.ts'

/** Names the folder of the trail, where that is not in the data folder. */
const POINTER = 'trail-folder'
const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700
/** The time between two attempts to take the lock, in milliseconds. */
const PERIOD = 1000

/** Says in a data folder where the trail of its service is. Throws the system's error. */
export function pointToTrail(data: string, trail: string): void {
  const pointer = join(data, POINTER)
  if (resolve(trail) === resolve(usualTrail(data))) {
    rmSync(pointer, { force: true })
    return
  }
  mkdirSync(data, { recursive: true, mode: PRIVATE_FOLDER })
  writeFileSync(pointer, `${resolve(trail)}\n`, { mode: PRIVATE_FILE })
}

function pointedTrail(data: string): string | undefined {
  try {
    return readFileSync(join(data, POINTER), 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}

/** Whether anything is there: also a link that leads nowhere, and what may not be looked at. */
function isThere(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch (thrown) {
    return !(hasCode(thrown, 'ENOENT') || hasCode(thrown, 'ENOTDIR'))
  }
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0
  } catch {
    return false
  }
}

/**
 * The trail that a data folder has; undefined if it has none. One that cannot be read, and one elsewhere that is not there (its disk is
 * not mounted), count: a service points to its trail only when that is open.
 */
export function trailIn(data: string): string | undefined {
  const pointer = join(data, POINTER)
  if (isThere(pointer)) return pointedTrail(data) ?? pointer
  const usual = usualTrail(data)
  return isThere(usual) && !isEmpty(usual) ? usual : undefined
}

/** Where a service keeps its state, as far as it is known. */
interface ServiceFolders {
  readonly data: string
  /** The folder of its trail; undefined if it is not known, or none is kept. */
  readonly trail?: string | undefined
}

/** The folder of the trail of the service that has used a data folder last, if it keeps one. */
export const trailOf = (data: string): string => pointedTrail(data) ?? usualTrail(data)

/** The service that runs on these folders; undefined if none does, or none says so. */
export function findService({ data, trail }: ServiceFolders): Announced | undefined {
  // The file may name another folder than the one that the running service was started with.
  const folders = [trail, pointedTrail(data), usualTrail(data), data]
  for (const folder of new Set(folders.filter((each) => each !== undefined))) {
    const service = runningService(folder)
    if (service !== undefined) return service
  }
  return undefined
}

/** How long a service has to say that it lives, in milliseconds. */
const PROBE_WITHIN = 2000

/** Whether a service runs on this host: one in another container announces an address that is not this host's. */
export const isOnThisHost = ({ host }: Announced): boolean => host === hostname()

/** Whether a service can be reached from here. */
export async function isReachable(service: Announced): Promise<boolean> {
  const { adminUrl } = service
  if (!isOnThisHost(service)) return false
  const signal = AbortSignal.timeout(PROBE_WITHIN)
  // Without the token.
  return fetch(new URL('/health/live', adminUrl), { signal }).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Holds the lock of the data folder of a service that keeps no trail; waits for it where another process has it. */
export class DataFolderLock implements Disposable {
  readonly #data: string
  #announcement: ServiceAnnouncement | undefined
  #lock: TrailLock | undefined
  #cancel: (() => void) | undefined

  constructor(data: string) {
    this.#data = data
    this.#take()
  }

  /** Says where the service is, as long as it holds the lock. */
  announce(announcement: ServiceAnnouncement): void {
    this.#announcement = announcement
    this.#tell()
  }

  #tell(): void {
    try {
      if (this.#announcement !== undefined) this.#lock?.announce(this.#announcement)
    } catch {
      // As where there is no lock.
    }
  }

  /** A folder that cannot be written has no lock: commands then need --admin-url. */
  #take(): void {
    try {
      this.#lock = tryLock(this.#data)
    } catch {
      return
    }
    this.#tell()
    if (this.#lock === undefined) this.#cancel = systemAfter(PERIOD, () => this.#take())
  }

  [Symbol.dispose](): void {
    this.#cancel?.()
    this.#lock?.release()
  }
}

/**
 * The file with the token of the admin API cannot be used, so the service must not start (T7). The message says what to
 * do.
 */
class AdminTokenError extends Error {
  override readonly name = 'AdminTokenError'
}

/** The file that holds the token if the configuration gives none. The first start creates it. */
export const adminTokenFile = (data: string): string => join(data, 'admin-token')

const OTHERS = 0o077
const SHORTEST = 16
// Windows has no mode bits: the folder's access list decides there who may read.
const HAS_MODES = process.platform !== 'win32'

/** Why the content of the file is no token, to follow "the token"; undefined if it is one. */
const faultOf = (token: string): string | undefined =>
  faultOfToken(token) ?? (token.length < SHORTEST ? 'is too short' : undefined)

/** @throws AdminTokenError */
function tokenOf(content: Buffer, path: string): string {
  const wrong = (fault: string): Error =>
    new AdminTokenError(`The admin token ${path} ${fault}. Run rm ${path}; the next start makes another.`)
  let token: string
  try {
    token = withoutLineEnd(textOfBytes(content))
  } catch (thrown) {
    throw thrown instanceof NotTextError ? wrong(`cannot be read (${thrown.message})`) : thrown
  }
  const fault = faultOf(token)
  if (fault !== undefined) throw wrong(fault)
  return token
}

/**
 * Reads the token in a data folder. Rejects with AdminTokenError if other users may read the file or it holds no token of 16
 * characters, and with the system's error if the file cannot be read.
 *
 * @param isService whether the service itself reads it: another user may not own it then
 */
export async function readAdminToken(data: string, isService = false): Promise<string> {
  const path = adminTokenFile(data)
  await using file = await open(path, 'r')
  // Read from the open file, so that the file that was checked is the file that is read.
  const { mode, uid } = await file.stat()
  // A command of root's may read the token of the service's user.
  if (isService && isAnothers(uid))
    throw new AdminTokenError(
      `The admin token ${path} belongs to the user ${userName(uid) ?? uid}. Run rm ${path}; the next start makes another.`,
    )
  if (HAS_MODES && (mode & OTHERS) !== 0)
    throw new AdminTokenError(
      `The admin token ${path} is open to other users. Run rm ${path}; the next start makes another. If only its ` +
        'group may read it, and that is this service alone, set `dataGroup: own`.',
    )
  return tokenOf(await file.readFile(), path)
}

/** Reads the token in a data folder; creates it if there is none. Rejects as `readAdminToken` does. */
export async function ensureAdminToken(data: string): Promise<string> {
  await mkdir(data, { recursive: true, mode: 0o700 })
  try {
    await using file = await open(adminTokenFile(data), 'wx', 0o600)
    await file.writeFile(`${newSecret()}\n`)
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown
  }
  return readAdminToken(data, true)
}
