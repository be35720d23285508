import { link, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { newSecret } from '../kernel/ids.ts'

/** The folder cannot be used as it is: the service must not start (T7). The message tells an operator what to do. */
export class KeyFolderError extends Error {
  override readonly name = 'KeyFolderError'
}

const OTHERS_MAY_ANYTHING = 0o077
const OTHERS_MAY_WRITE = 0o022
// Windows has no mode bits: there, who may read is a matter of the folder's access list.
const HAS_MODES = process.platform !== 'win32'

/** What else helps where nobody but the group may: a Kubernetes fsGroup opens all files of a volume to it. */
const ofGroup = (mode: number): string =>
  (mode & 0o007) === 0 ? ', or set `dataGroup: own` if its group is this service alone' : ''

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')
export const reasonOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)
const hasCode = (thrown: unknown, code: string): boolean =>
  thrown instanceof Error && (thrown as NodeJS.ErrnoException).code === code

/** Creates the folder (0700) if there is none. Rejects with KeyFolderError. */
export async function createPrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((thrown: unknown) => {
    throw cannotOpen(folder, thrown)
  })
}

const cannotOpen = (folder: string, cause: unknown): KeyFolderError =>
  new KeyFolderError(
    `The folder of the signing keys, ${folder}, cannot be opened or created: ${reasonOf(cause)}`,
    { cause },
  )

/**
 * What tells this very folder from another one at the same path: an unmounted volume leaves an empty folder behind.
 * Rejects with KeyFolderError if it is not there.
 */
export async function identifyFolder(folder: string): Promise<string> {
  const { dev, ino } = await stat(folder).catch((thrown: unknown) => {
    throw cannotOpen(folder, thrown)
  })
  return `${dev} ${ino}`
}

/** What tells one version of a file from the next; `gone` if it is not there. */
export async function stampOf(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  return found === undefined ? 'gone' : `${found.ino} ${found.mtimeMs}`
}

/** The names in the folder. Rejects with KeyFolderError if others may write to it, or it is not there. */
export async function listPrivateFolder(folder: string): Promise<readonly string[]> {
  try {
    const { mode } = await stat(folder)
    if (HAS_MODES && (mode & OTHERS_MAY_WRITE) !== 0)
      throw new KeyFolderError(
        `The folder of the signing keys, ${folder}, can be written by other users (mode ${octal(mode)}): ` +
          `they could put a key of their own there. Run chmod 700 on it${ofGroup(mode)}.`,
      )
    return await readdir(folder)
  } catch (thrown) {
    if (thrown instanceof KeyFolderError) throw thrown
    throw cannotOpen(folder, thrown)
  }
}

/**
 * The text of a file; undefined if it is gone. The mode is asked of the open file, so that what was judged is what is
 * read. Rejects with KeyFolderError if others may do anything with it. `what` names it in that message.
 */
export async function readPrivateFile(path: string, what: string): Promise<string | undefined> {
  let text: string
  let mode: number
  try {
    await using file = await open(path, 'r')
    mode = (await file.stat()).mode
    text = await file.readFile('utf8')
  } catch (thrown) {
    // Another process has retired it since the folder was listed.
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw new KeyFolderError(`The ${what} file ${path} cannot be read: ${reasonOf(thrown)}`, {
      cause: thrown,
    })
  }
  if (HAS_MODES && (mode & OTHERS_MAY_ANYTHING) !== 0)
    throw new KeyFolderError(
      `The ${what} file ${path} is open to other users (mode ${octal(mode)}). Whoever has read it can make ` +
        `tokens: replace it, or, if nobody can have, run chmod 600 on it${ofGroup(mode)}.`,
    )
  return text
}

async function writePrivateFile(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  await file.sync()
}

/**
 * Writes the whole file under another name, then links it to its own: the link fails if the name is taken, so of
 * several processes that do it at once one wins, and nobody ever reads half a file. True for the winner.
 */
export async function claimPrivateFile(folder: string, name: string, text: string): Promise<boolean> {
  const draft = join(folder, `.${name}.${newSecret(9)}`)
  try {
    await writePrivateFile(draft, text)
    await link(draft, join(folder, name))
    return true
  } catch (thrown) {
    if (hasCode(thrown, 'EEXIST')) return false
    throw new KeyFolderError(
      `A new key cannot be written to the folder of the signing keys, ${folder}: ${reasonOf(thrown)}`,
      { cause: thrown },
    )
  } finally {
    await unlink(draft).catch(() => undefined)
  }
}

/** Puts another file in the place of one, whole: whoever reads it gets the old text or the new one. */
export async function replacePrivateFile(folder: string, name: string, text: string): Promise<void> {
  const draft = join(folder, `.${name}.${newSecret(9)}`)
  try {
    await writePrivateFile(draft, text)
    await rename(draft, join(folder, name))
  } catch (thrown) {
    await unlink(draft).catch(() => undefined)
    throw new KeyFolderError(
      `${name} cannot be replaced in the folder of the signing keys, ${folder}: ${reasonOf(thrown)}`,
      { cause: thrown },
    )
  }
}

/** Gone is gone, whoever removed it. */
export async function removePrivateFile(path: string): Promise<void> {
  await unlink(path).catch((thrown: unknown) => {
    if (!hasCode(thrown, 'ENOENT')) throw thrown
  })
}
