import { vi } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import type { StartedPostern } from './start-postern.ts'

/** Runs while nothing can be recorded that is about to be given. */
export async function withoutAudit<T>(
  { world: { audit } }: Pick<StartedPostern, 'world'>,
  act: () => Promise<T>,
): Promise<T> {
  const held = vi.spyOn(audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
  try {
    return await act()
  } finally {
    held.mockRestore()
  }
}
