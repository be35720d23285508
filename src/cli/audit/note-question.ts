/** The record that a question leaves, where no service answers it (C12.5). */
import { tryLock } from '../../audit/lock.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { Configuration } from '../../settings/configuration.ts'
import { openAuditTrail } from '../../start/dependencies.ts'
import type { AuditedConfiguration } from './trail-folder.ts'

/** What is recorded: who asks what, and why. */
export interface NotedQuestion {
  readonly texts: Readonly<Record<string, string>>
  readonly purpose: 'find' | 'export'
  /** As they call themselves: nobody has proven it. */
  readonly by: string
  readonly reason: string | undefined
}

/**
 * Leaves the record, as a writer of the trail under its lock. `service`: a service holds the lock, and is to be asked.
 * A record that cannot be left stops no question; `failed` says why.
 */
export async function noteQuestion(
  { configuration, plan }: AuditedConfiguration,
  question: NotedQuestion,
): Promise<'noted' | 'service' | { readonly failed: string }> {
  try {
    const lock = tryLock(plan.folder)
    if (lock === undefined) return 'service'
    try {
      await leaveRecord(configuration, question)
      return 'noted'
    } finally {
      lock.release()
    }
  } catch (thrown) {
    return { failed: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

async function leaveRecord(
  configuration: Configuration,
  { texts, purpose, by, reason }: NotedQuestion,
): Promise<void> {
  const problems: string[] = []
  const recorder = { note: (_level: string, event: string) => void problems.push(event) }
  const trail = await openAuditTrail(configuration, { clock: systemClock, recorder })
  trail?.note({
    event: purpose === 'find' ? 'audit.queried' : 'audit.exported',
    outcome: 'success',
    actor: { kind: 'operator', claimed: by, via: 'cli' },
    change: { asked: texts },
    why: reason,
  })
  await trail?.close()
  if (problems.length > 0) throw new Error(`the trail cannot be written (${problems.join(', ')})`)
}
