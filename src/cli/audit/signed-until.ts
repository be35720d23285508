/** Up to when a trail is signed: a quick look at the end of its manifest (C12.4.4). */
import { join } from 'node:path'
import { PUBLIC_KEY_FILE, readPublicKey } from '../../audit/keys.ts'
import { isSignedLine, MANIFEST_FILE, readManifestEnd } from '../../audit/manifest.ts'
import { visible } from '../../operator/audit-text.ts'

/** The rest of the manifest, the chains and the anchors are not looked at here. */
const VERIFY = 'Whether the trail is whole: postern audit verify'

/**
 * A sentence for each folder, and what tells more.
 *
 * @param named those that were named on the command line: the trail of the configuration needs no name
 */
export async function signedUntil(folders: readonly string[], named: readonly string[]): Promise<string> {
  const sentences: string[] = []
  for (const folder of folders) {
    const found = await lastSignature(folder)
    sentences.push(folders.length > 1 ? `${visible(folder)}: ${found}` : found)
  }
  return [`${sentences.join('. ')}. ${VERIFY}`, ...named.map(visible)].join(' ')
}

async function lastSignature(folder: string): Promise<string> {
  try {
    const { last } = await readManifestEnd(join(folder, MANIFEST_FILE))
    if (last === undefined) return 'Nothing is signed yet'
    const fits = isSignedLine(last, await readPublicKey(join(folder, PUBLIC_KEY_FILE)))
    return fits ? `Signed up to ${last.time}` : 'The last signature of the manifest does not fit its key'
  } catch (thrown) {
    return `Up to when it is signed is not known: ${visible((thrown as Error).message)}`
  }
}
