/** `postern audit hash FILE`: the hash that the records of a body have (C12.2.2). */
import { createReadStream } from 'node:fs'
import { bodyKeyOf, hashBody, presentAuditKeys } from '../../audit/keys.ts'
import { reasonInWords } from '../../kernel/thrown.ts'
import { printJson, type Terminal } from '../../operator/terminal.ts'
import { EXIT, type Given } from '../../operator/verb.ts'
import type { HASH } from '../tables/audit.ts'
import { orKeyTrouble, readAudited } from './trail-folder.ts'

interface HashedFile {
  readonly folder: string
  readonly file: string
  readonly json: boolean
}

async function hashFile({ folder, file, json }: HashedFile, terminal: Terminal): Promise<number> {
  const { bodyKey } = await presentAuditKeys(folder)
  const hash = hashBody(bodyKeyOf(bodyKey))
  try {
    for await (const bytes of createReadStream(file)) hash.update(bytes as Uint8Array)
  } catch (thrown) {
    terminal.stderr.write(`postern: ${file} cannot be read (${reasonInWords(thrown)})\n`)
    return EXIT.failed
  }
  if (json) printJson({ file, hash: hash.digest() }, terminal)
  else terminal.stdout.write(`${hash.digest()}\n`)
  return EXIT.done
}

export function hash(
  { positionals: [file = ''], values }: Given<typeof HASH>,
  terminal: Terminal,
): number | Promise<number> {
  const audited = readAudited(values.config, terminal)
  if (audited === undefined) return EXIT.refused
  const hashed = { folder: audited.plan.folder, file, json: values.json === true }
  return orKeyTrouble(() => hashFile(hashed, terminal), terminal)
}
