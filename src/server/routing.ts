import type { Door } from '../contracts/exchange.ts'
import type { RequestTarget } from '../http/request-target.ts'
import { Fault } from '../kernel/faults.ts'

/** The entrances behind the public listener. */
export interface Doors {
  /** `/api`, and whatever no other door takes: it tells those apart and answers them enveloped (C2.3). */
  readonly api: Door
  /** `/connect/*` and `/.well-known/*`. Absent in a sidecar (C11.2): then those paths are nobody's. */
  readonly identity: Door | undefined
}

const API = 'api'

/**
 * Chooses the door by the path alone, never by Host (contract, preface). The identity paths stand below the path of
 * `{auth_url}`, if it has one; RFC 8414 metadata stands above it.
 */
export function compileRouting(doors: Doors, authUrl: string): (target: RequestTarget | Fault) => Door {
  const { api, identity } = doors
  if (identity === undefined) return () => api
  const below = new URL(authUrl).pathname.replace(/\/$/, '')
  const prefixes = ['/.well-known/', `${below}/.well-known/`, `${below}/connect/`]
  return (target) => {
    if (target instanceof Fault || target.segments[0] === API) return api
    return prefixes.some((prefix) => target.path.startsWith(prefix)) ? identity : api
  }
}
