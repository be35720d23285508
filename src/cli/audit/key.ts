/** `postern audit key`: the public key of the manifest (C12.4.4). */
import { presentAuditKeys } from '../../audit/keys.ts'
import { printJson, type Terminal } from '../../operator/terminal.ts'
import { EXIT, type Given } from '../../operator/verb.ts'
import type { KEY } from '../tables/audit.ts'
import { orKeyTrouble, readAudited } from './trail-folder.ts'

export function key({ values }: Given<typeof KEY>, terminal: Terminal): number | Promise<number> {
  const audited = readAudited(values.config, terminal)
  if (audited === undefined) return EXIT.refused
  return orKeyTrouble(async () => {
    const { publicPem } = await presentAuditKeys(audited.plan.folder)
    if (values.json === true) printJson({ publicKey: publicPem }, terminal)
    else terminal.stdout.write(publicPem)
    return EXIT.done
  }, terminal)
}
