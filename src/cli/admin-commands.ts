/** How commands call the admin API of a running service. */
import { hostname, userInfo } from 'node:os'
import { sendTo } from '../operator/remote.ts'
import type { Terminal } from '../operator/terminal.ts'
import type { Configuration } from '../settings/configuration.ts'

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

/** Who gives an order by what files allow: the user whose rights this process has, by number where it has no name, and the host. */
export function systemOperatorName(): string {
  const user = (): string => {
    try {
      return userInfo().username
    } catch {
      return String(process.geteuid?.() ?? 'unknown')
    }
  }
  return `${user()}@${hostname()}`
}
