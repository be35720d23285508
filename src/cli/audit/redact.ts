/** `postern audit redact`: the personal values of a subject are erased, and the trail still verifies (C12.2.3). */
import { parseArgs } from 'node:util'
import { eraseSubjectValues, findSubjectValues } from '../../audit/redact.ts'
import type { AuditEntry } from '../../contracts/audit.ts'
import { systemClock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import { openTrailKeeper } from '../../start/trail-keeper.ts'
import { operatorName } from '../admin-commands.ts'
import { countOf, EXIT, type Subcommand, type Terminal, UsageError } from '../command.ts'
import { checkedReason } from '../order-options.ts'
import { orKeyTrouble, readAudited, type AuditedConfiguration } from './trail-folder.ts'

async function redact(
  { configuration, plan }: AuditedConfiguration,
  subject: string,
  why: string,
  terminal: Terminal,
): Promise<number> {
  const keeper = await openTrailKeeper(configuration, {
    clock: systemClock,
    recorder: { note: () => undefined },
  })
  try {
    if (keeper?.trail === undefined || keeper.lock === undefined) {
      terminal.stderr.write(
        'postern: a service writes this trail: stop it, erase the values, and start it again\n',
      )
      return EXIT.failed
    }
    const found = findSubjectValues(plan.folder, subject)
    const values = found.reduce((sum, each) => sum + each.values, 0)
    const entry: AuditEntry = {
      event: 'audit.redacted',
      outcome: 'success',
      actor: { kind: 'operator', claimed: operatorName(terminal), via: 'cli' },
      on: { subject },
      change: { values, files: found.length },
      why,
    }
    await keeper.trail.require(entry)
    await eraseSubjectValues(found)
    terminal.stdout.write(
      `${countOf(values, 'personal value')} of ${subject} erased, in ${countOf(found.length, 'file')}\n`,
    )
    return EXIT.done
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    terminal.stderr.write('postern: nothing was erased, because it could not be recorded\n')
    return EXIT.failed
  } finally {
    await keeper?.close()
  }
}

export const redactVerb: Subcommand = {
  usage: 'redact --subject SUB --reason TEXT [--config FILE]',
  summary:
    'Erase the personal values of all records whose actor or object is this `sub`. The service must be stopped',
  run(args, terminal) {
    const { values } = parseArgs({
      args: [...args],
      options: { subject: { type: 'string' }, reason: { type: 'string' }, config: { type: 'string' } },
    })
    const why = checkedReason(values)
    const { subject } = values
    if (!subject || !why) throw new UsageError('expected --subject and --reason')
    const audited = readAudited(values.config, terminal)
    if (audited === undefined) return Promise.resolve(EXIT.refused)
    return orKeyTrouble(() => redact(audited, subject, why, terminal), terminal)
  },
}
