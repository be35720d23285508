/** The token of the admin API where the configuration has none: made at the first start, kept in the data folder. */
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { newSecret } from '../../kernel/ids.ts'

/** The file cannot be used as it is: the service must not start (T7). The message tells an operator what to do. */
export class AdminTokenError extends Error {
  override readonly name = 'AdminTokenError'
}

export const adminTokenFile = (data: string): string => join(data, 'admin-token')

const OTHERS = 0o077
const SHORTEST = 16
// Windows has no mode bits: there, who may read is a matter of the folder's access list.
const HAS_MODES = process.platform !== 'win32'

/** The token in a data folder. Rejects with AdminTokenError if other users may read it, or it is none. */
export async function readAdminToken(data: string): Promise<string> {
  const path = adminTokenFile(data)
  await using file = await open(path, 'r')
  // Asked of the open file, so that what was judged is what is read.
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

/** The token in a data folder, made if there is none yet. Rejects as `readAdminToken` does. */
export async function ensureAdminToken(data: string): Promise<string> {
  await mkdir(data, { recursive: true, mode: 0o700 })
  try {
    await using file = await open(adminTokenFile(data), 'wx', 0o600)
    await file.writeFile(`${newSecret()}\n`)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown
  }
  return readAdminToken(data)
}
