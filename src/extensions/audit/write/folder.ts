/** The folder of a trail, before anything in it is used. */
import type { Stats } from 'node:fs'
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { whoMayReplace } from '../../../base/files/file-modes.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'

/** The folder of the trail cannot be used as it is, so the service must not start. The message says what to do. */
export class AuditFolderError extends Error {
  override readonly name = 'AuditFolderError'
}

/**
 * Creates the folder (mode 0700) if it does not exist, and examines it. Rejects with AuditFolderError if it cannot be
 * written, or if other users could write to it: they could replace the files of the trail.
 * @param group whose the folder's group is (`dataGroup`)
 */
export async function prepareAuditFolder(folder: string, group: 'own' | 'others'): Promise<void> {
  const found = await openFolder(folder).catch((cause: unknown) => {
    const reason = messageOf(cause)
    throw new AuditFolderError(
      `The folder of the audit trail, ${folder}, cannot be used: ${reason}. Correct that, or set another folder ` +
        '(`audit.folder`).',
      { cause },
    )
  })
  const others = whoMayReplace(folder, found, group)
  if (others !== undefined)
    throw new AuditFolderError(
      `Others could replace the files of the audit trail: its folder, ${folder}, ${others}.`,
    )
}

async function openFolder(folder: string): Promise<Stats> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await stat(folder)
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  return found
}
