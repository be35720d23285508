/**
 * Kubernetes makes every file of a volume readable and writable for the `fsGroup` of a pod: private keys too, which
 * Postern then refuses. If the configuration says that only this service is in the group (`dataGroup: own`), the rights
 * of the group are removed before anything is opened.
 */
import { constants } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'

const GROUP_MAY_ANYTHING = 0o070
const OTHERS_MAY_ANYTHING = 0o007
const OWNER_MAY = 0o700

/** Levels: the data folder holds files and folders, and that of the audit trail holds folders too. */
const DEPTH = 3

/**
 * Removes the group's rights from files and folders below a folder, and resolves with their paths. The folder itself is
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
