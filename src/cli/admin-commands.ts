/** How commands call the admin API of a running service. */
import { userInfo } from 'node:os'
import { type AdminAccess, sendTo } from '../operator/remote.ts'
import type { Terminal } from '../operator/terminal.ts'
import type { Configuration } from '../settings/configuration.ts'
import { adminUrl, type CallOptions, ownToken } from './call-options.ts'

/** A request of the admin API. */
interface AdminCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
}

/**
 * Sends a request. Rejects with OperationError if nobody answers, or the service refuses.
 *
 * @param own the operator's own token
 * @param address the URL of the admin listener. Default: as configured-admin.ts finds it
 */
export async function requestAdmin(
  configuration: Configuration,
  call: AdminCall,
  own?: string,
  address?: string,
): Promise<Response> {
  const { adminAccess } = await import('./configured-admin.ts')
  return sendTo(await adminAccess(configuration, { token: own, address }), call, call)
}

/** The name of the operator for the log. */
export function operatorName({ env }: Terminal): string {
  if (env['SUDO_USER']) return env['SUDO_USER']
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}

/**
 * The admin API that a command calls. Undefined, after the problems were written, if the configuration does not say where
 * it is. With `--admin-url` and an own token the configuration is not read: it may be one that nothing can be read of.
 */
export async function findAdminApi(
  options: CallOptions,
  terminal: Terminal,
): Promise<AdminAccess | undefined> {
  const own = ownToken(options, terminal)
  const given = adminUrl(options, terminal)
  if (given !== undefined && own !== undefined) return { address: given, token: own }
  // Only here: a configuration with all its sections is most of what such a command loads.
  const { readAdminAccess } = await import('./configured-admin.ts')
  return readAdminAccess(options.config, { token: own, address: given }, terminal)
}
