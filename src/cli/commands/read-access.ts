/** Reads what commands that tell who has access need: a configuration, and the clients and users of its store. */
import { didYouMeanOfFew } from '../../base/config/problem-text.ts'
import type { Problems } from '../../base/config/problems.ts'
import { MARK_KINDS, marksIn } from '../../identity/directory/records/marks.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { countOf, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import {
  NOTHING_STORED,
  type Parties,
  readParties,
  readStored,
  STORED_KINDS,
  type StoredRecords,
} from '../../operate/settings/parties.ts'
import { readStoredRecords } from '../../state/stores/read-store.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { orTellTrouble, writeReport } from '../line/command.ts'
import { hasPeopleElsewhere, SETTINGS } from '../../serve/start/settings.ts'
import { loadConfiguration } from '../../operate/settings/check-configuration.ts'

// The directory of the store, for commands that only read: the service may run meanwhile.

/**
 * The directory's records in the store: of the first configuration whose store can be read. Tells on stderr
 * which store it is, or `none` where there is none. Rejects with StoreError if it cannot be read.
 */
export async function readStoredPeople(
  configurations: readonly Configuration[],
  none: string,
  { stderr }: Terminal,
): Promise<StoredRecords> {
  for (const configuration of configurations) {
    if (isSidecar(configuration)) continue
    const { store: config, data } = configuration
    const named = { config, data, kinds: SETTINGS.added.stores }
    const found = await readStoredRecords(named, [...STORED_KINDS, ...MARK_KINDS])
    if (found === undefined) continue
    const { place, records } = found
    const stored = readStored((kind) => records[kind], marksIn(records))
    const { clients, users } = stored
    stderr.write(
      `postern: including ${countOf(clients.length, 'client')} and ${countOf(users.length, 'user')} of the store ${place}\n`,
    )
    return stored
  }
  stderr.write(`postern: there is no store to read. ${none}\n`)
  return NOTHING_STORED
}

/** A name that the configuration and the store do not have. The message goes to stderr, and the exit code is 2. */
export class UnknownName extends Error {}

/** @throws UnknownName, with a suggestion */
export function foundOrRefused<T>(
  what: string,
  name: string,
  found: T | undefined,
  names: Iterable<string>,
): T {
  if (found !== undefined) return found
  const hint = didYouMeanOfFew(name, names)
  throw new UnknownName(`there is no ${what} "${name}"${hint === undefined ? '' : ` — ${hint}`}`)
}

/** The data for a command that tells who has access: the parties, unless the configuration has problems. */
export interface ReadAccess {
  readonly configuration: Configuration
  readonly parties: Parties
}

/** Undefined after the problems were written. Throws StoreError if the store cannot be read. */
export async function readAccess(file: string, terminal: Terminal): Promise<ReadAccess | undefined> {
  const { configuration, problems } = loadConfiguration(SETTINGS, file, terminal.env)
  const parties = configuration && (await partiesOf(configuration, problems, terminal))
  if (configuration === undefined || parties === undefined) {
    writeReport(file, problems, terminal)
    return undefined
  }
  return { configuration, parties }
}

async function partiesOf(
  configuration: Configuration,
  problems: Problems,
  terminal: Terminal,
): Promise<Parties | undefined> {
  const none = 'Only clients and users of the configuration are shown.'
  const stored = await readStoredPeople([configuration], none, terminal)
  if (hasPeopleElsewhere(configuration.directory))
    terminal.stderr.write('postern: the users that `directory.people` finds are not included\n')
  const parties = await readParties(
    configuration,
    { environment: terminal.env, clientForm: SETTINGS.added.clientForm, stored, clock: systemClock },
    problems,
  )
  return problems.failed ? undefined : parties
}

/** Runs what throws UnknownName or StoreError, and tells it. */
export const orTellUnknown = (work: () => Promise<number>, terminal: Terminal): Promise<number> =>
  orTellTrouble([StoreError], () => orTellTrouble([UnknownName], work, terminal, EXIT.refused), terminal)
