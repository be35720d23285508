/** The audit trail: who changed what, in files that show every later change (C12). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { AUDIT_COMMANDS } from './commands.ts'
import { auditOf, auditSchema, compileAudit, planAudit } from './format/schema.ts'

export const extension = {
  settings: {
    keys: { '': { audit: auditSchema } },
    checks: [{ needs: ['audit'], whole: ['issuers'], run: compileAudit }],
    trail: {
      folderOf: (configuration) => planAudit(configuration)?.folder,
      withoutOwn: (configuration) => {
        const audit = auditOf(configuration)
        const anchors = audit.anchors.map(({ log, file }) => ({ log, file: file !== undefined }))
        return { ...configuration, audit: { ...audit, folder: undefined, anchors } }
      },
    },
  },
  trail: async () => (await import('./opener.ts')).OPENER,
  operations: async () => (await import('./operations.ts')).OPERATIONS,
  commands: AUDIT_COMMANDS,
} as const satisfies Extension
