import type { Report } from '../../config/report.ts'
import type { PeopleModule } from '../../contracts/people-module.ts'
import { after, type Clock } from '../../kernel/clock.ts'
import { openModule } from '../../modules/open-module.ts'
import { defaultExportOf } from '../../modules/source.ts'
import type { PeopleConfig } from '../config.ts'
import { ModuleDirectory } from './module-directory.ts'
import { errorForLog } from './error-for-log.ts'

export interface PeopleOpening {
  readonly clock: Clock
  readonly report: Report
  /** Logs what the module's code did outside of any call that waits for it. Must not throw. */
  readonly note: (event: 'module_failed' | 'people_decoy_failed', cause: unknown) => void
}

/** Milliseconds within which a module must be imported and made. */
const OPENED_WITHIN = 30_000

/** Imports the module of `directory.people`. Undefined, and a problem reported, if it can't be used. */
export async function openPeople(
  config: PeopleConfig,
  { clock, report, note }: PeopleOpening,
): Promise<ModuleDirectory | undefined> {
  const failed = (cause: unknown): void => note('module_failed', cause)
  const opening = {
    at: ['directory', 'people'],
    report,
    timeout: OPENED_WITHIN,
    failed: (thrown: unknown) => failed(errorForLog(thrown)),
  }
  const module = await openModule(config, opening, (exports) => make(exports, config.options))
  if (module === undefined) return undefined
  return new ModuleDirectory(module, {
    ...{ clock, after, failed },
    decoyFailed: (cause) => note('people_decoy_failed', cause),
  })
}

const FUNCTIONS = ['findUserByName', 'findUserBySubject', 'verifyPassword'] as const

/** Of a default export that is a function, what that makes; else the default export itself, else all exports. */
async function make(exports: unknown, options: unknown): Promise<PeopleModule> {
  const factory = defaultExportOf(exports)
  const made: unknown =
    typeof factory === 'function'
      ? await (factory as (options: unknown) => unknown)(structuredClone(options))
      : (factory ?? exports)
  for (const name of FUNCTIONS)
    if (!hasFunction(made, name)) throw new Error(`it has no function \`${name}\``)
  return made as PeopleModule
}

const hasFunction = (made: unknown, name: string): boolean =>
  typeof made === 'object' &&
  made !== null &&
  typeof (made as Readonly<Record<string, unknown>>)[name] === 'function'
