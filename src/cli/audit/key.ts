/** `postern audit key`: the public key of the manifest (C12.4.4). */
import { parseArgs } from 'node:util'
import { presentAuditKeys } from '../../audit/keys.ts'
import { EXIT, type Subcommand } from '../command.ts'
import { orKeyTrouble, readAudited } from './trail-folder.ts'

export const keyVerb: Subcommand = {
  usage: 'key [--config FILE]',
  summary: 'Print the public key that proves the trail. Keep it elsewhere, for `verify --key`',
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } } })
    const audited = readAudited(values.config, terminal)
    if (audited === undefined) return Promise.resolve(EXIT.refused)
    return orKeyTrouble(async () => {
      terminal.stdout.write((await presentAuditKeys(audited.plan.folder)).publicPem)
      return EXIT.done
    }, terminal)
  },
}
