import type { Problems } from '../../config/problems.ts'
import { after, type Clock } from '../../kernel/clock.ts'
import { openSource } from '../../config/modules/open-module.ts'
import type { PeopleConfig } from '../schema.ts'
import { ModuleCalls } from './module-calls.ts'
import { ModuleDirectory } from './module-directory.ts'

export interface PeopleOpening {
  readonly clock: Clock
  readonly problems: Problems
  /** Logs what the module's code did outside of any call that waits for it. Must not throw. */
  readonly note: (event: PeopleEvent, cause: unknown) => void
}

export type PeopleEvent = 'module_failed' | 'people_decoy_failed' | 'people_thread_replaced'

/** Opens the module of `directory.people` in a thread. Undefined, and a problem reported, if it can't be used. */
export async function openPeople(
  { options, ...named }: PeopleConfig,
  { clock, problems, note }: PeopleOpening,
): Promise<ModuleDirectory | undefined> {
  const calls = await openSource(named, { at: ['directory', 'people'], problems }, (source) =>
    ModuleCalls.open(
      { source, options },
      {
        ...{ after, clock },
        failed: (cause) => note('module_failed', cause),
        replaced: (cause) => note('people_thread_replaced', cause),
      },
    ),
  )
  return (
    calls && new ModuleDirectory(calls, { clock, decoyFailed: (cause) => note('people_decoy_failed', cause) })
  )
}
