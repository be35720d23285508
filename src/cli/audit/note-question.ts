/** The record that a question leaves, where no service answers it (C12.5). */
import { tryLock } from '../../audit/lock.ts'
import type { AuditEntry } from '../../contracts/audit.ts'
import { systemClock } from '../../kernel/clock.ts'
import { messageOf } from '../../kernel/thrown.ts'
import { openTrailOwner } from '../../start/trail-owner.ts'
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
  const problems: string[] = []
  const recorder = {
    note: (level: string, event: string) => {
      if (level === 'error') problems.push(event)
    },
  }
  try {
    // A trail that is not to be written is not opened: that alone would begin a segment.
    const free = tryLock(plan.folder)
    if (free === undefined) return 'service'
    free.release()
    const trailOwner = await openTrailOwner(configuration, { clock: systemClock, recorder })
    const { trail, lock } = trailOwner ?? {}
    if (lock !== undefined) trail?.note(entryOf(question))
    await trailOwner?.close()
    if (lock === undefined) return 'service'
  } catch (thrown) {
    return { failed: messageOf(thrown) }
  }
  return problems.length === 0 ? 'noted' : { failed: `the trail cannot be written (${problems.join(', ')})` }
}

const entryOf = ({ texts, purpose, by, reason }: NotedQuestion): AuditEntry => ({
  event: purpose === 'find' ? 'audit.queried' : 'audit.exported',
  outcome: 'success',
  actor: { kind: 'operator', claimed: by, via: 'cli' },
  change: { asked: texts },
  why: reason,
})
