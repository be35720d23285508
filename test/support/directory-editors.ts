import { Problems } from '../../src/base/config/problems.ts'
import { ClientEditor } from '../../src/identity/directory/editors/client-editor.ts'
import { compileDirectory } from '../../src/identity/directory/records/compile.ts'
import { Hasher } from '../../src/identity/directory/hashing/hasher.ts'
import { BusinessEditor, FundEditor, RoleEditor } from '../../src/identity/directory/editors/editors.ts'
import type { EditingParts } from '../../src/identity/directory/editors/editing.ts'
import { UserEditor } from '../../src/identity/directory/editors/user-editor.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { compileScopes } from '../../src/base/config/scopes/schema.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { acting, actingOnClients, actingOnUsers } from './acting.ts'

/** All editors of a service's directory. `pause` is how they wait for other processes. */
export async function directoryEditors(
  configuration: Configuration,
  state: Pick<EditingParts, 'store' | 'feed' | 'tokenRevoker'>,
  pause?: EditingParts['pause'],
) {
  const problems = new Problems()
  const catalogue = compileScopes(configuration.scopes, problems)
  const configured = await compileDirectory(configuration.directory, catalogue, problems)
  const { store, feed, tokenRevoker } = state
  const parts = {
    store,
    feed,
    tokenRevoker,
    clock: systemClock,
    configured,
    catalogue,
    ...(pause && { pause }),
  }
  return {
    businesses: acting(new BusinessEditor(parts)),
    funds: acting(new FundEditor(parts)),
    roles: acting(new RoleEditor(parts)),
    clients: actingOnClients(new ClientEditor(parts)),
    users: actingOnUsers(new UserEditor({ ...parts, hasher: new Hasher() })),
  }
}

export type DirectoryEditors = Awaited<ReturnType<typeof directoryEditors>>
