import { bearer, send, type Sent } from './requests.ts'
import { configFiles } from './config-files.ts'
import { replacedService, type Replacement } from './replaced-service.ts'
import { postern, type StartedPostern } from './start-postern.ts'
import { withStream } from './streaming.ts'
import { startUpstream, type Upstream, type UpstreamBehaviour } from './start-upstream.ts'
import { ALL_AT_ACME, issueToken } from './tokens.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'

/** As `kind: module` is read. */
interface Module {
  readonly kind: 'module'
  readonly file?: string
  readonly over?: string
  readonly options: unknown
  /** Milliseconds. */
  readonly timeout: number
  readonly idle: number
  readonly responseHeaders: readonly string[]
}

/** A configuration whose backends may be modules, which its type does not tell. */
export const withBackends = (
  loaded: Configuration,
  backends: Readonly<Record<string, object>>,
): Configuration => ({ ...loaded, backends: backends as Configuration['backends'] })

export function moduleAt({ backends }: Configuration, name: string): Module {
  const found: { readonly kind: string } | undefined = backends[name]
  if (found?.kind !== 'module') throw new TypeError(`${name} is no module`)
  return found as Module
}

export interface OverOptions {
  readonly module?: Partial<Module>
  /** Changes the forwarder's section. */
  readonly under?: Record<string, unknown>
  readonly behaviour?: UpstreamBehaviour
  /** Path of the target. */
  readonly base?: string
  readonly change?: (configuration: Configuration) => Configuration
}

export interface Over {
  readonly upstream: Upstream
  readonly gateway: StartedPostern
  readonly token: string
  readonly ask: (sent: Sent) => ReturnType<typeof send>
}

/**
 * A module over a forwarder, in front of an upstream that tells what it got: the backend `funds` over `service`, with
 * the actions of streaming.ts.
 * @param source of what the default export returns, such as `{ request: (call) => ({ path: '/x' }) }`
 */
export const startOver = (source: string, options?: OverOptions): Promise<Over> =>
  over((given) => postern({ keeps: 'trail', ...given }), source, options)

/** The same for a file or a `describe`: each test's module is put in force in one service. */
export function replacedOver(): typeof startOver {
  const replace = replacedService({ keeps: 'trail' })
  return (source, options) => over(replace, source, options)
}

async function over(
  open: (options: Replacement) => Promise<StartedPostern>,
  source: string,
  options: OverOptions = {},
): Promise<Over> {
  const upstream = await startUpstream(options.behaviour)
  const file = configFiles({ 'around.mjs': `export default () => (${source})` })('around.mjs')
  const change = (loaded: Configuration): Configuration => {
    const streaming = withStream(loaded)
    const { funds } = streaming.backends
    if (funds === undefined) throw new TypeError('no backend "funds"')
    const service = { ...funds, ...options.under } as Configuration['backends'][string]
    const around: Module = {
      kind: 'module',
      file,
      over: 'service',
      options: {},
      timeout: 10_000,
      idle: 10_000,
      responseHeaders: [],
      ...options.module,
    }
    // A module takes no websockets.
    const actions = streaming.actions.filter(({ action }) => action !== 'live/{room}')
    const changed = withBackends({ ...streaming, actions }, { service, funds: around })
    return options.change?.(changed) ?? changed
  }
  const gateway = await open({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url + (options.base ?? '') },
    change,
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const ask = ({ headers, ...sent }: Sent) =>
    send(gateway, { ...sent, headers: { ...bearer(access_token), ...headers } })
  return { upstream, gateway, token: access_token, ask }
}
