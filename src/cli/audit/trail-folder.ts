/** The folder of the audit trail that a verb is for. */
import { type AuditPlan, planAudit } from '../../audit/schema.ts'
import { KeyError } from '../../keys/key-error.ts'
import type { Terminal } from '../../operator/terminal.ts'
import { EXIT } from '../../operator/verb.ts'
import { type Configuration, isSidecar, readConfiguration } from '../../settings/configuration.ts'
import { configurationFile, writeReport } from '../command.ts'

/** A configuration whose trail is kept. */
export interface AuditedConfiguration {
  readonly configuration: Configuration
  readonly plan: AuditPlan
}

/**
 * The configuration (`config`, else the default) and its trail. Undefined, after the reason was written
 * to stderr, if it has problems or keeps no trail.
 */
export function readAudited(
  config: string | undefined,
  terminal: Terminal,
): AuditedConfiguration | undefined {
  const file = configurationFile(config, terminal)
  const { configuration, problems } = readConfiguration(file, terminal.env)
  if (configuration === undefined || problems.failed) {
    writeReport(file, problems, terminal)
    return undefined
  }
  const plan = planAudit(configuration.audit, configuration.data, isSidecar(configuration))
  if (plan !== undefined) return { configuration, plan }
  terminal.stderr.write(`postern: ${file}: no audit trail is kept — see \`audit.enabled\`\n`)
  return undefined
}

/** Does the work. Keys that cannot be used are told on stderr, and the exit code is 1. */
export async function orKeyTrouble(work: () => Promise<number>, { stderr }: Terminal): Promise<number> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof KeyError)) throw thrown
    stderr.write(`postern: ${thrown.message}\n`)
    return EXIT.failed
  }
}
