/** `postern audit redact`: the personal values of a subject are erased, and the trail still verifies (C12.2.3). */
import { announcedService, tryLock } from '../../audit/lock.ts'
import type { Redacted } from '../../audit/read/read-trail.ts'
import { systemClock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import { OperationError } from '../../operator/errors.ts'
import { printJson, type Terminal } from '../../operator/terminal.ts'
import { countOf } from '../../operator/text.ts'
import { EXIT, type Given, UsageError } from '../../operator/verb.ts'
import { openTrailOwner } from '../../start/trail-owner.ts'
import { operatorName, requestAdmin } from '../admin-commands.ts'
import { type CallOptions, checkedReason, ownToken } from '../call-options.ts'
import type { REDACT } from '../tables/audit.ts'
import { type AuditedConfiguration, orKeyTrouble, readAudited } from './trail-folder.ts'

interface Redaction {
  readonly audited: AuditedConfiguration
  readonly subject: string
  readonly why: string
  readonly options: CallOptions & { readonly json?: boolean | undefined }
  readonly terminal: Terminal
}

/** By the service that writes the trail. */
async function redactByService(url: string, redaction: Redaction): Promise<Redacted> {
  const { audited, subject, why: reason, options, terminal } = redaction
  const body = { subject, reason, by: operatorName(terminal) }
  const call = { method: 'POST', path: '/audit/redact', body } as const
  const response = await requestAdmin(audited.configuration, call, ownToken(options, terminal), url)
  return (await response.json()) as Redacted
}

/** By this process. Undefined if another one has begun to write the trail meanwhile. */
async function redactHere({ audited, subject, why, terminal }: Redaction): Promise<Redacted | undefined> {
  const recorder = { note: () => undefined }
  const trailOwner = await openTrailOwner(audited.configuration, { clock: systemClock, recorder })
  const actor = { kind: 'operator', claimed: operatorName(terminal), via: 'cli' } as const
  const entry = { event: 'audit.redacted', outcome: 'success', actor, on: { subject }, why } as const
  const noWorkers = (): Promise<void> => Promise.resolve()
  try {
    return await trailOwner?.redact(subject, noWorkers, async ({ values, files }, erase) => {
      await trailOwner.trail?.require({ ...entry, change: { values, files } })
      await erase()
    })
  } finally {
    await trailOwner?.close()
  }
}

/** Rejects with OperationError, or with Fault `audit_unavailable`. */
async function redactAnywhere(redaction: Redaction): Promise<Redacted> {
  const { folder } = redaction.audited.plan
  const lock = tryLock(folder)
  lock?.release()
  const redacted = lock && (await redactHere(redaction))
  if (redacted !== undefined) return redacted
  const url = announcedService(folder)?.adminUrl
  if (url === undefined)
    throw new OperationError(
      `nothing was erased: another command uses ${folder}, or a service starts or ends; try again`,
    )
  return redactByService(url, redaction)
}

async function redactAndTell(redaction: Redaction): Promise<number> {
  const { subject, options, terminal } = redaction
  try {
    const { values, files } = await redactAnywhere(redaction)
    const where = countOf(files, 'file')
    if (options.json === true) printJson({ subject, values, files }, terminal)
    else terminal.stdout.write(`${countOf(values, 'personal value')} of ${subject} erased, in ${where}\n`)
    return EXIT.done
  } catch (thrown) {
    if (!(thrown instanceof Fault) && !(thrown instanceof OperationError)) throw thrown
    const why =
      thrown instanceof Fault ? 'nothing was erased, because it could not be recorded' : thrown.message
    terminal.stderr.write(`postern: ${why}\n`)
    return EXIT.failed
  }
}

export function redact(
  { values: options }: Given<typeof REDACT>,
  terminal: Terminal,
): number | Promise<number> {
  const why = checkedReason(options)
  const { subject } = options
  if (!subject || !why) throw new UsageError('expected --subject and --reason')
  ownToken(options, terminal)
  const audited = readAudited(options.config, terminal)
  if (audited === undefined) return EXIT.refused
  return orKeyTrouble(() => redactAndTell({ audited, subject, why, options, terminal }), terminal)
}
