/** `postern audit hash FILE`: the hash that the records of a body have (C12.2.2). */
import { createReadStream } from 'node:fs'
import { parseArgs } from 'node:util'
import { bodyKeyOf, hashBody, presentAuditKeys } from '../../audit/keys.ts'
import { codeOrMessage } from '../../kernel/thrown.ts'
import { EXIT, singleName, type Subcommand, type Terminal } from '../command.ts'
import { orKeyTrouble, readAudited } from './trail-folder.ts'

async function hashFile(folder: string, file: string, { stdout, stderr }: Terminal): Promise<number> {
  const { bodyKey } = await presentAuditKeys(folder)
  const hash = hashBody(bodyKeyOf(bodyKey))
  try {
    for await (const bytes of createReadStream(file)) hash.update(bytes as Uint8Array)
  } catch (thrown) {
    stderr.write(`postern: ${file} cannot be read (${codeOrMessage(thrown)})\n`)
    return EXIT.failed
  }
  stdout.write(`${hash.digest()}\n`)
  return EXIT.done
}

export const hashVerb: Subcommand = {
  usage: 'hash FILE [--config FILE]',
  summary: 'Print what `call.body` is in the record of a call whose body is in this file',
  async run(args, terminal) {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { config: { type: 'string' } },
    })
    const file = singleName(positionals, 'file')
    const audited = readAudited(values.config, terminal)
    if (audited === undefined) return EXIT.refused
    return orKeyTrouble(() => hashFile(audited.plan.folder, file, terminal), terminal)
  },
}
