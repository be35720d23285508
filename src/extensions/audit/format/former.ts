/**
 * The trail of Postern 0.2 and before, which had a chain for each process (C12.4.8). It is kept as it was, in a folder of its own:
 * this version adds nothing to it, and does not verify it.
 */
import { createPublicKey, hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../base/kernel/thrown.ts'
import { presentAuditKeys } from './keys.ts'
import { chunksOf } from './lines.ts'
import { isSignedLine, MANIFEST_FILE } from './manifest.ts'

/** Its folder, in that of the trail. */
export const FORMER_FOLDER = '0.2'

/** The sentence by which an operator learns of it, behind its folder and `is`. */
export const FORMER_ADVICE =
  'a trail of Postern 0.2 or before: only that version verifies it, and its personal values (*.personal.jsonl) are yours to delete'

const LINE = /^(\{"v":1,.*),"hash":"([A-Za-z0-9_-]{43})","signature":"([A-Za-z0-9_-]{86})"\}$/

const LINE_FEED = 0x0a

/** The first and the last whole line of a manifest of that version. */
export interface FormerManifest {
  readonly first: FormerLine
  readonly last: FormerLine
}

interface FormerLine {
  readonly n: number
  readonly time: string
  readonly hash: string
  readonly signature: string
}

/** The folder that holds such a trail aside; undefined if there is none. */
export function formerFolder(folder: string): string | undefined {
  const former = join(folder, FORMER_FOLDER)
  return existsSync(former) ? former : undefined
}

/** The manifest of a folder, if it is one of that version: each line has the hash of its own. Rejects with the system's error. */
export async function readFormerManifest(folder: string): Promise<FormerManifest | undefined> {
  try {
    await using file = await open(join(folder, MANIFEST_FILE))
    let first: FormerLine | undefined
    let last: FormerLine | undefined
    for await (const text of file.readLines()) {
      const line = readLine(text)
      if (first === undefined && line === undefined) return undefined
      last = line ?? last
      first ??= last
    }
    return first && last && { first, last }
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw thrown
  }
}

/**
 * The same, if its first and its last line were signed with the key of a trail's folder: anybody can make a line that has the hash
 * of its own. Rejects with KeyError if that folder has no keys that can be used, or with the system's error.
 */
export async function readOwnFormerManifest(
  folder: string,
  keyFolder: string,
): Promise<FormerManifest | undefined> {
  const manifest = await readFormerManifest(folder)
  if (manifest === undefined) return undefined
  // The public key beside the manifest may have been replaced with it.
  const key = createPublicKey((await presentAuditKeys(keyFolder)).publicPem)
  return [manifest.first, manifest.last].every((line) => isSignedLine(line, key)) ? manifest : undefined
}

/** As that version read it: undefined if it is none, or its hash is not its own. */
function readLine(text: string): FormerLine | undefined {
  const [, members, lineHash, signature] = LINE.exec(text) ?? []
  if (members === undefined || lineHash === undefined || signature === undefined) return undefined
  if (hash('sha256', `${members}}`, 'base64url') !== lineHash) return undefined
  try {
    const { n, time } = JSON.parse(`${members}}`) as Partial<Record<keyof FormerLine, unknown>>
    const isWhole = typeof n === 'number' && typeof time === 'string'
    return isWhole ? { n, time, hash: lineHash, signature } : undefined
  } catch {
    return undefined
  }
}

/** Whether the manifest of a folder is of that version, by its first line. Throws the system's error. Blocks. */
export function isFormer(folder: string): boolean {
  for (const { bytes } of chunksOf(join(folder, MANIFEST_FILE)))
    return readLine(bytes.toString('utf8', 0, bytes.indexOf(LINE_FEED))) !== undefined
  return false
}
