/** The data folder: whether another service uses it, and the rights of its group. */
import { constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { quoteClean } from '../../base/kernel/clean-text.ts'
import { whoMayReplace } from '../../base/files/file-modes.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { trailIn } from '../../operate/trail/announcement.ts'
import { isBusy } from '../../state/stores/link/store-error.ts'
import { createOnce } from '../../state/stores/sqlite/store-files.ts'

const FILE = 'service.lock'
const PRIVATE_FOLDER = 0o700
/** Milliseconds to wait for another service that looks at this very moment. */
const PATIENCE = 1000

/** The service must not start on this data folder. The message says why, and what to do. */
class DataFolderError extends Error {
  override readonly name = 'DataFolderError'
}

/**
 * To be called before anything in the folder is used or made. Throws DataFolderError.
 * @param keepsTrails whether an extension keeps trails
 */
export function admitDataFolder(
  { data, dataGroup }: Pick<Configuration, 'data' | 'dataGroup'>,
  keepsTrails: boolean,
): void {
  const unkept = keepsTrails ? undefined : unkeptTrail(data)
  if (unkept !== undefined) throw new DataFolderError(unkept)
  const found = statSync(data, { throwIfNoEntry: false })
  const others = found && whoMayReplace(data, found, dataGroup)
  if (others !== undefined)
    throw new DataFolderError(
      `Others could replace the keys, the store and the admin token: the data folder, ${data}, ${others}.`,
    )
}

/**
 * Why a data folder must not be used where no extension keeps a trail: it has one, and nobody would see that changes leave no record
 * there. Undefined if it has none.
 */
export function unkeptTrail(data: string): string | undefined {
  const trail = trailIn(data)
  if (trail === undefined) return undefined
  return (
    `The data folder, ${data}, has an audit trail (${quoteClean(trail)}), and this Postern has no extension that keeps one. Add the extension ` +
    '`audit`, or use another data folder.'
  )
}

interface DataUse extends Disposable {
  /** Whether another service used the folder when this one began to. */
  readonly isShared: boolean
}

/** The use of a folder that cannot be written: nobody changes anything in it. */
const READ_ONLY: DataUse = { isShared: false, [Symbol.dispose]: () => undefined }

/**
 * Begins to use a data folder, which is made if it is missing. Every service holds a shared lock of the operating system on a file of it,
 * and asks for an exclusive one first: whoever is refused that is not alone. A lock ends with its process, however that
 * ends, so nothing is left behind by a crash, and no process id can be mistaken.
 *
 * Trap: a POSIX lock of a process ends when that process closes any descriptor of the file, so only SQLite opens it again.
 */
export function useData(folder: string): DataUse {
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER })
    const file = join(folder, FILE)
    createOnce(file)
    return lookInto(new DatabaseSync(file, { timeout: 0 }))
  } catch {
    return READ_ONLY
  }
}

/** Whether a service uses a folder. Nothing is made in a folder that no service has used. */
export function hasService(folder: string): boolean {
  if (!existsSync(join(folder, FILE))) return false
  using use = useData(folder)
  return use.isShared
}

/** Throws SQLite's error. */
function lookInto(db: DatabaseSync): DataUse {
  try {
    const isShared = !isAlone(db)
    db.exec(`PRAGMA busy_timeout = ${PATIENCE}; BEGIN; SELECT count(*) FROM sqlite_schema`)
    return { isShared, [Symbol.dispose]: () => db.close() }
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

function isAlone(db: DatabaseSync): boolean {
  try {
    db.exec('BEGIN EXCLUSIVE; ROLLBACK')
    return true
  } catch (thrown) {
    if (isBusy(thrown)) return false
    throw thrown
  }
}

const GROUP_MAY_ANYTHING = 0o070
const OTHERS_MAY_ANYTHING = 0o007
const OWNER_MAY = 0o700

/** Levels: the data folder holds files and folders, and that of the audit trail holds folders too. */
const DEPTH = 3

/**
 * Removes the group's rights from files and folders below a folder, and resolves with their paths. Kubernetes makes every
 * file of a volume readable and writable for the `fsGroup` of a pod: private keys too, which Postern then refuses. If the
 * configuration says that only this service is in the group (`dataGroup: own`), this runs before anything is opened. The folder itself is
 * left alone: it may be a mount of another owner. Also left alone, and refused by later checks: what another user owns,
 * what belongs to a group that this process is not in, what other users have rights to. Never rejects.
 */
export async function takeBackFromGroup(folder: string, depth = DEPTH): Promise<readonly string[]> {
  const taken: string[] = []
  // One after another: an audit trail may have more files than a process may open at once.
  for (const name of await readdir(folder).catch(() => []))
    taken.push(...(await takeBack(join(folder, name), depth)))
  return taken
}

async function takeBack(path: string, depth: number): Promise<readonly string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined || !(found.isFile() || found.isDirectory())) return []
  const mine = (await isTakenBack(path)) ? [path] : []
  const below = found.isDirectory() && depth > 1 ? await takeBackFromGroup(path, depth - 1) : []
  return [...mine, ...below]
}

/** Checks and changes the same open file. Symbolic links are not followed. */
async function isTakenBack(path: string): Promise<boolean> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { mode, uid, gid } = await file.stat()
    const isOurs = uid === process.geteuid?.() && process.getgroups?.().includes(gid) === true
    if (!isOurs || (mode & GROUP_MAY_ANYTHING) === 0 || (mode & OTHERS_MAY_ANYTHING) !== 0) return false
    await file.chmod(mode & OWNER_MAY)
    return true
  } catch {
    return false
  }
}
