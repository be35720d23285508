/** The file with the one token of the admin API that may everything. */
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { newSecret } from '../kernel/ids.ts'
import { hasCode } from '../kernel/thrown.ts'

/**
 * The file with the token of the admin API cannot be used, so the service must not start (T7). The message says what to
 * do.
 */
export class AdminTokenError extends Error {
  override readonly name = 'AdminTokenError'
}

/** The file that holds the token if the configuration gives none. The first start creates it. */
export const adminTokenFile = (data: string): string => join(data, 'admin-token')

const OTHERS = 0o077
const SHORTEST = 16
// Windows has no mode bits: the folder's access list decides there who may read.
const HAS_MODES = process.platform !== 'win32'

/**
 * Reads the token in a data folder. Rejects with AdminTokenError if other users may read the file or the token is too
 * short, and with the system's error if the file cannot be read.
 */
export async function readAdminToken(data: string): Promise<string> {
  const path = adminTokenFile(data)
  await using file = await open(path, 'r')
  // The mode of the open file, so that the file that was checked is the file that is read.
  const { mode } = await file.stat()
  if (HAS_MODES && (mode & OTHERS) !== 0)
    throw new AdminTokenError(
      `The admin token ${path} is open to other users. Delete the file; the next start makes another. If only its ` +
        'group may read it, and that is this service alone, set `dataGroup: own`.',
    )
  const token = (await file.readFile('utf8')).trim()
  if (token.length < SHORTEST)
    throw new AdminTokenError(
      `The admin token ${path} is too short. Delete the file; the next start makes another.`,
    )
  return token
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
  return readAdminToken(data)
}
