/** `postern access --against OLD`: who gains and who loses access to which actions. */
import { systemClock } from '../../base/kernel/clock.ts'
import type { Problems } from '../../base/config/problems.ts'
import { printJson, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import { accessChangeText } from '../../operate/service/configuration.ts'
import { type AccessChange, accessOf, compareAccess } from '../../operate/settings/access.ts'
import { loadConfiguration } from '../../operate/settings/check-configuration.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { SETTINGS } from '../../serve/start/settings.ts'
import { orTellTrouble, writeReport } from '../line/command.ts'
import { readStoredPeople } from './read-access.ts'

interface Read {
  readonly file: string
  readonly configuration: Configuration
  readonly problems: Problems
}

function read(file: string, terminal: Terminal): Read | undefined {
  const { configuration, problems } = loadConfiguration(SETTINGS, file, terminal.env)
  if (configuration !== undefined) return { file, configuration, problems }
  writeReport(file, problems, terminal)
  return undefined
}

/** Undefined, after the problems were written, if the scopes or the directory of one have problems. */
async function compare(before: Read, after: Read, terminal: Terminal): Promise<AccessChange | undefined> {
  // Both are combined with the same records, because only the configurations are compared.
  const both = [before.configuration, after.configuration]
  const none = 'Only clients and users of the configurations are compared.'
  const stored = await readStoredPeople(both, none, terminal)
  const parts = {
    environment: terminal.env,
    clientForm: SETTINGS.added.clientForm,
    stored,
    clock: systemClock,
  }
  const access = [before, after].map(({ configuration, problems }) =>
    accessOf(configuration, parts, problems),
  )
  const [old = [], next = []] = await Promise.all(access)
  const refused = [before, after].filter(({ problems }) => problems.failed)
  for (const { file, problems } of refused) writeReport(file, problems, terminal)
  return refused.length > 0 ? undefined : compareAccess(old, next)
}

/** The promise gives the exit code. */
export async function showAccessChange(
  { old, next, json }: { readonly old: string; readonly next: string; readonly json: boolean },
  terminal: Terminal,
): Promise<number> {
  const before = read(old, terminal)
  const after = read(next, terminal)
  if (before === undefined || after === undefined) return EXIT.refused
  const show = async (): Promise<number> => {
    const changes = await compare(before, after, terminal)
    if (changes === undefined) return EXIT.refused
    const { gained, lost } = changes
    if (json) printJson({ gained, lost }, terminal)
    else terminal.stdout.write(accessChangeText({ gained, lost }))
    return EXIT.done
  }
  return orTellTrouble([StoreError], show, terminal)
}
