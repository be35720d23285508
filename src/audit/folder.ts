/** The folder of the trail. */
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { adviceForGroup, mayOthersWrite, octalMode } from '../kernel/file-modes.ts'
import { messageOf } from '../kernel/thrown.ts'

/** The folder of the trail cannot be used as it is, so the service must not start. The message says what to do. */
export class AuditFolderError extends Error {
  override readonly name = 'AuditFolderError'
}

/**
 * Creates the folder (mode 0700) if it does not exist, and examines it. Rejects with AuditFolderError if it cannot be
 * written, or if other users could write to it: they could replace the files of the trail.
 */
export async function prepareAuditFolder(folder: string): Promise<void> {
  const { mode } = await openFolder(folder).catch((cause: unknown) => {
    const reason = messageOf(cause)
    throw new AuditFolderError(
      `The folder of the audit trail, ${folder}, cannot be used: ${reason}. Correct that, or set another folder ` +
        '(`audit.folder`).',
      { cause },
    )
  })
  if (mayOthersWrite(mode))
    throw new AuditFolderError(
      `The folder of the audit trail, ${folder}, can be written by other users (mode ${octalMode(mode)}): they could ` +
        `replace its files. Run chmod 700 on it${adviceForGroup(mode)}.`,
    )
}

async function openFolder(folder: string): Promise<{ readonly mode: number }> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await stat(folder)
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  return found
}
