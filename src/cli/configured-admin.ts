/** Where the admin API of a service is, and the token for it, by its configuration. */
import { runningService } from '../audit/lock.ts'
import { planAudit } from '../audit/schema.ts'
import { localUrl } from '../kernel/listen-address.ts'
import { hasCode, messageOf } from '../kernel/thrown.ts'
import { OperationError } from '../operator/errors.ts'
import type { AdminAccess } from '../operator/remote.ts'
import { adminTokenFile, readAdminToken } from '../operator/token-file.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'

async function tokenOf({ admin, data }: Configuration): Promise<string> {
  if (admin.token !== undefined) return admin.token
  try {
    return await readAdminToken(data)
  } catch (error) {
    throw new OperationError(
      hasCode(error, 'ENOENT')
        ? `no service of this configuration has started yet: there is no ${adminTokenFile(data)}. Start it (postern serve), or name the configuration of one that runs: --config`
        : `the admin token cannot be read: ${messageOf(error)}`,
    )
  }
}

/**
 * Where the admin API of the service with this configuration is: where a running one says, since it may have been started
 * with another port; else as the configuration says.
 */
function addressOf(configuration: Configuration): string {
  const { admin, audit, data } = configuration
  const folder = planAudit(audit, data, isSidecar(configuration))?.folder
  return (folder && runningService(folder)?.adminUrl) ?? localUrl(admin.listen)
}

/** What was given beside the configuration goes before it. */
type GivenAccess = { readonly [Name in keyof AdminAccess]: string | undefined }

/** Rejects with OperationError if the token cannot be read. */
export const adminAccess = async (
  configuration: Configuration,
  { token, address }: GivenAccess,
): Promise<AdminAccess> => ({
  address: address ?? addressOf(configuration),
  token: token ?? (await tokenOf(configuration)),
})
