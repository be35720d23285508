import type { Configuration } from '../../src/operate/settings/configuration.ts'
import type { StartOptions } from './start-postern.ts'

type Forwarding = Extract<Configuration['backends'][string], { kind: 'stream' }>

/** What a test may want otherwise of the `stream` backend. */
export interface StreamChanges {
  readonly closeOnExpiry?: boolean
  readonly timeouts?: Partial<Forwarding['timeouts']>
  readonly requestHeaders?: readonly string[]
  readonly responseHeaders?: readonly string[]
  readonly tls?: Partial<Forwarding['tls']>
}

const anybody = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
const business = { level: 'business', area: 'fund-data' } as const

/**
 * Actions of every kind of stream, below `/api/1.0/b/ACME/fund-data/`: `live/{room}` is a websocket, `events` an event
 * stream, `upload` takes any bytes, `download` gives them; `plain/{one}` is none of these.
 */
const ACTIONS = [
  { ...business, action: 'live/{room}', methods: { GET: { ...anybody, websocket: true } } },
  { ...business, action: 'events', methods: { GET: { ...anybody, produces: ['text/event-stream'] } } },
  {
    ...business,
    action: 'upload',
    methods: { POST: { ...anybody, consumes: ['application/octet-stream'] } },
  },
  {
    ...business,
    action: 'download',
    methods: { GET: { ...anybody, produces: ['application/octet-stream'] } },
  },
  { ...business, action: 'plain/{one}', methods: { GET: anybody } },
] as const

/** Path of an action at ACME. */
export const at = (action: string): string => `/api/1.0/b/ACME/fund-data/${action}`

/** Puts a `stream` backend, with what tests need to call it, in the place of the `http` one of upstream.yaml. */
export function withStream(configuration: Configuration, changes: StreamChanges = {}): Configuration {
  const { funds } = configuration.backends
  if (funds?.kind !== 'http') throw new Error('the configuration has no http backend to replace')
  const stream = {
    ...funds,
    closeOnExpiry: true,
    ...changes,
    kind: 'stream' as const,
    timeouts: { ...funds.timeouts, ...changes.timeouts },
    tls: { ...funds.tls, ...changes.tls },
  }
  return {
    ...configuration,
    backends: { ...configuration.backends, funds: stream },
    actions: [...configuration.actions, ...ACTIONS],
  }
}

/** Options to start Postern before an upstream that streams. */
export const streaming = (url: string, changes?: StreamChanges): StartOptions => ({
  config: 'upstream.yaml',
  environment: { UPSTREAM_URL: url },
  change: (configuration) => withStream(configuration, changes),
})
