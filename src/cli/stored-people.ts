/** The directory of the store, for commands that only read: the service may run meanwhile. */
import { BUSINESS, FUND, readBusiness, readFund, readRole, ROLE } from '../directory/schema.ts'
import { CLIENT, readStoredClient, readStoredUser, USER } from '../directory/stored-directory.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Terminal } from '../operator/terminal.ts'
import { countOf } from '../operator/text.ts'
import { EXIT } from '../operator/verb.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { NOTHING_STORED, type StoredRecords } from '../settings/parties.ts'
import { readStoredRecords } from '../stores/read-store.ts'
import { StoreError } from '../stores/store-error.ts'

/**
 * What the directory has in the store: that of the first configuration that has one which can be read. Tells on stderr
 * which store it is, or `none` where there is none. Rejects with StoreError if it cannot be read.
 */
export async function readStoredPeople(
  configurations: readonly Configuration[],
  none: string,
  { stderr }: Terminal,
): Promise<StoredRecords> {
  for (const configuration of configurations) {
    if (isSidecar(configuration)) continue
    const { store, data } = configuration
    const found = await readStoredRecords(
      store,
      data,
      [CLIENT, USER, BUSINESS, FUND, ROLE],
      systemClock.now(),
    )
    if (found === undefined) continue
    const { place, records } = found
    const clients = records[CLIENT].map(readStoredClient)
    const users = records[USER].map(readStoredUser)
    stderr.write(
      `postern: including ${countOf(clients.length, 'client')} and ${countOf(users.length, 'user')} of the store ${place}\n`,
    )
    return {
      ...{ clients, users },
      businesses: records[BUSINESS].map(readBusiness),
      funds: records[FUND].map(readFund),
      roles: records[ROLE].map(readRole),
    }
  }
  stderr.write(`postern: there is no store to read. ${none}\n`)
  return NOTHING_STORED
}

/** Does the work. A store that cannot be read is told on stderr, and the exit code is 1. */
export async function orStoreTrouble(work: () => Promise<number>, { stderr }: Terminal): Promise<number> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown
    stderr.write(`postern: ${thrown.message}\n`)
    return EXIT.failed
  }
}
