import { Problems } from '../../src/base/config/problems.ts'
import { compileDirectory } from '../../src/identity/directory/records/compile.ts'
import { Hasher } from '../../src/identity/directory/hashing/hasher.ts'
import { openEditors } from '../../src/identity/directory/editors/editors.ts'
import type { EditingParts } from '../../src/identity/directory/editors/editing.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { compileScopes } from '../../src/base/config/scopes/schema.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { acting, actingOnClients, actingOnUsers } from './acting.ts'
import { READING } from './settings.ts'

/** All editors of a service's directory. `pause` is how they wait for other processes. */
export async function directoryEditors(
  configuration: Configuration,
  state: Pick<EditingParts, 'store' | 'feed' | 'tokenRevoker'>,
  pause?: EditingParts['pause'],
) {
  const problems = new Problems()
  const catalogue = compileScopes(configuration.scopes, problems)
  const configured = await compileDirectory(configuration.directory, catalogue, problems, READING)
  const { store, feed, tokenRevoker } = state
  const editors = openEditors({
    store,
    feed,
    tokenRevoker,
    clock: systemClock,
    configured,
    catalogue,
    hasher: new Hasher(),
    ...(pause && { pause }),
  })
  return {
    businesses: acting(editors.business),
    funds: acting(editors.fund),
    roles: acting(editors.role),
    clients: actingOnClients(editors.client),
    users: actingOnUsers(editors.user),
  }
}

export type DirectoryEditors = Awaited<ReturnType<typeof directoryEditors>>
