import { link, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { adviceForGroup, mayOthersAccess, mayOthersWrite, octalMode } from './file-modes.ts'
import { newSecret } from '../kernel/ids.ts'
import { hasCode, messageOf } from '../kernel/thrown.ts'
import { KeyError } from '../kernel/key-error.ts'

/** The purpose of the keys of a folder: the words of its errors. */
export interface KeyPurpose {
  /** `folder of the signing keys`. */
  readonly folder: string
  /** The harm that a key does in the hands of somebody who has read it: `make tokens`. */
  readonly power: string
}

const TOKEN_KEYS: KeyPurpose = { folder: 'folder of the signing keys', power: 'make tokens' }

/** Creates the folder (mode 0700) if it does not exist. Rejects with KeyError. */
export async function createPrivateFolder(folder: string, purpose = TOKEN_KEYS): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((thrown: unknown) => {
    throw cannotOpen(folder, thrown, purpose)
  })
}

const cannotOpen = (folder: string, cause: unknown, purpose = TOKEN_KEYS): KeyError =>
  new KeyError(`The ${purpose.folder}, ${folder}, cannot be opened or created: ${messageOf(cause)}`, {
    cause,
  })

/** Device and inode: an unmounted volume leaves another, empty folder. Rejects with KeyError if there is none. */
export async function identifyFolder(folder: string): Promise<string> {
  const { dev, ino } = await stat(folder).catch((thrown: unknown) => {
    throw cannotOpen(folder, thrown)
  })
  return `${dev} ${ino}`
}

/** Differs between versions of a file; `gone` if there is no file. Never rejects. */
export async function stampOf(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  return found === undefined ? 'gone' : `${found.ino} ${found.mtimeMs}`
}

/** The names in the folder. Rejects with KeyError if other users may write to it, or it does not exist. */
export async function listPrivateFolder(folder: string, purpose = TOKEN_KEYS): Promise<readonly string[]> {
  try {
    const { mode } = await stat(folder)
    if (mayOthersWrite(mode))
      throw new KeyError(
        `The ${purpose.folder}, ${folder}, can be written by other users (mode ${octalMode(mode)}): ` +
          `they could add a key of their own. Run chmod 700 on it${adviceForGroup(mode)}.`,
      )
    return await readdir(folder)
  } catch (thrown) {
    if (thrown instanceof KeyError) throw thrown
    throw cannotOpen(folder, thrown, purpose)
  }
}

/**
 * The text of a file; undefined if it is gone. The mode is that of the open file, so that the file that was checked is
 * the file that is read. Rejects with KeyError if other users may access it. `what` names it in that message.
 */
export async function readPrivateFile(
  path: string,
  what: string,
  purpose = TOKEN_KEYS,
): Promise<string | undefined> {
  let text: string
  let mode: number
  try {
    await using file = await open(path, 'r')
    mode = (await file.stat()).mode
    text = await file.readFile('utf8')
  } catch (thrown) {
    // Another process has removed it since the folder was listed.
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw new KeyError(`The ${what} file ${path} cannot be read: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
  if (mayOthersAccess(mode))
    throw new KeyError(
      `The ${what} file ${path} is open to other users (mode ${octalMode(mode)}). Whoever has read it can ` +
        `${purpose.power}: replace it. If nobody can have read it, run chmod 600 on it${adviceForGroup(mode)}.`,
    )
  return text
}

async function writePrivateFile(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  await file.sync()
}

/**
 * Writes the file under another name and then links it to `name`. The link fails if the name is taken. So of several
 * processes that do this at once one wins, and nobody ever reads half a file. Resolves with true for the winner.
 * Rejects with KeyError.
 */
export async function claimPrivateFile(
  folder: string,
  name: string,
  text: string,
  purpose = TOKEN_KEYS,
): Promise<boolean> {
  const draft = join(folder, `.${name}.${newSecret(9)}`)
  try {
    await writePrivateFile(draft, text)
    await link(draft, join(folder, name))
    return true
  } catch (thrown) {
    if (hasCode(thrown, 'EEXIST')) return false
    throw new KeyError(
      `A new key cannot be written to the ${purpose.folder}, ${folder}: ${messageOf(thrown)}`,
      { cause: thrown },
    )
  } finally {
    await unlink(draft).catch(() => undefined)
  }
}

/** Replaces a file as a whole: a reader gets the old text or the new one. Rejects with KeyError. */
export async function replacePrivateFile(folder: string, name: string, text: string): Promise<void> {
  const draft = join(folder, `.${name}.${newSecret(9)}`)
  try {
    await writePrivateFile(draft, text)
    await rename(draft, join(folder, name))
  } catch (thrown) {
    await unlink(draft).catch(() => undefined)
    throw new KeyError(
      `${name} cannot be replaced in the folder of the signing keys, ${folder}: ${messageOf(thrown)}`,
      { cause: thrown },
    )
  }
}

/** Resolves also if the file is gone already. Rejects as the file system does otherwise. */
export async function removePrivateFile(path: string): Promise<void> {
  await unlink(path).catch((thrown: unknown) => {
    if (!hasCode(thrown, 'ENOENT')) throw thrown
  })
}
