import type { RequestTarget } from '../http/request-target.ts'
import { matchAction } from './checks/action.ts'
import type { Runtime } from './runtime.ts'

/**
 * Whether an upgrade to websocket at this target is to be taken (T2.5). Nothing is decided by it, but how the request
 * is served: upgrades that are not taken run through the same checks, as calls of HTTP/1.1.
 */
export function takesWebsocket({ actions }: Runtime, target: RequestTarget): boolean {
  try {
    return matchAction(actions, target, 'GET').operation.websocket
  } catch {
    return false
  }
}
