/**
 * Kubernetes gives a volume to the `fsGroup` of a pod by making every file in it readable and writable for that group:
 * private keys too, which Postern then refuses. Where the configuration says that the group is this service alone, what
 * the group may do is taken back before anything is opened.
 */
import { constants } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'

const GROUP_MAY_ANYTHING = 0o070
const OTHERS_MAY_ANYTHING = 0o007
const OWNER_MAY = 0o700

/** The data folder holds files and folders of files, and nothing deeper. */
const DEPTH = 2

/**
 * Takes every right of the group away from what this process's user owns below a folder (not from the folder itself,
 * which may be a mount that is somebody else's), and answers the paths. Left alone, for the checks that follow to
 * refuse: what other users may do anything with, what is of a group that this process is not in, what is owned by
 * somebody else. A folder that is not there has nothing to take back.
 */
export async function takeBackFromGroup(folder: string, depth = DEPTH): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => [])
  const taken = await Promise.all(names.map((name) => takeBack(join(folder, name), depth)))
  return taken.flat()
}

async function takeBack(path: string, depth: number): Promise<readonly string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined || !(found.isFile() || found.isDirectory())) return []
  const mine = (await isTakenBack(path)) ? [path] : []
  const below = found.isDirectory() && depth > 1 ? await takeBackFromGroup(path, depth - 1) : []
  return [...mine, ...below]
}

/** By the open file, so that what was judged is what is changed; a link is not followed. */
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
