import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { FORMER_FOLDER, isFormer, readOwnFormerManifest } from '../format/former.ts'
import { PUBLIC_KEY_FILE } from '../format/keys.ts'
import { MANIFEST_FILE } from '../format/manifest.ts'
import { syncFolder } from '../format/segment.ts'
import { AuditFolderError } from './folder.ts'

const PARTS = /^(?:\d{4}-\d{2}-\d{2}|announced|abandoned\.json)$/

/**
 * Moves the trail of Postern 0.2 or before, if the folder has one, into a folder of its own beside this version's (C12.4.8).
 * Resolves with whether it did. Its manifest goes last: a start that was cut off is gone on with by the next one. The keys stay, and
 * a copy of the public one goes along. One that their key has not signed is left: the start finds that manifest damaged. The caller
 * holds the lock. Rejects with AuditFolderError, KeyError, or with the system's error.
 */
export async function moveFormer(folder: string): Promise<boolean> {
  if (!isFormer(folder) || (await readOwnFormerManifest(folder, folder)) === undefined) return false
  const former = join(folder, FORMER_FOLDER)
  if (existsSync(join(former, MANIFEST_FILE)))
    throw new AuditFolderError(
      `${folder} has two audit trails of Postern 0.2: its own, and the one in ${former}. Move one of them elsewhere.`,
    )
  const names = (await readdir(folder)).filter((each) => PARTS.test(each))
  const taken = names.find((name) => existsSync(join(former, name)))
  if (taken !== undefined)
    throw new AuditFolderError(
      `${join(folder, taken)} is part of an audit trail of Postern 0.2, and cannot be moved into ${former}: that has a ${taken} too. ` +
        'Move one of them elsewhere.',
    )
  await mkdir(former, { recursive: true, mode: 0o700 })
  for (const name of names) await rename(join(folder, name), join(former, name))
  const key = join(folder, PUBLIC_KEY_FILE)
  if (existsSync(key)) await copyFile(key, join(former, PUBLIC_KEY_FILE))
  for (const each of [former, folder]) await syncFolder(each)
  await rename(join(folder, MANIFEST_FILE), join(former, MANIFEST_FILE))
  for (const each of [former, folder]) await syncFolder(each)
  return true
}
