/** The configuration of backends. What opens them is in open.ts, so that whoever only reads a file loads little. */
import { moduleKeys } from '../../base/config/modules/import-file.ts'
import {
  duration,
  flag,
  kinds,
  list,
  mapOf,
  name,
  optional,
  path,
  section,
  type Static,
  text,
} from '../../base/config/schema.ts'
import { forwarding, httpSchema, timeouts } from './forward/schema/schema.ts'

const moduleSchema = section(
  {
    ...moduleKeys('the backend'),
    over: optional(
      name({
        description:
          'The backend of kind `http` or `stream` that it runs around: it changes requests and answers, or makes several requests.',
      }),
    ),
    timeout: duration({
      default: '30s',
      description: 'How long the module may take until its answer begins. After that, the client gets 503.',
    }),
    idle: duration({
      default: '1m',
      description: 'Longest time between two pieces of a stream. After that, the client is cut off.',
    }),
    responseHeaders: list(text({ description: 'A header’s name.' }), {
      default: [],
      description: 'Further headers of its answers that reach the client, such as `Location`.',
    }),
  },
  { description: 'Code of your own: a file or a package.' },
)

export type ModuleConfig = Static<typeof moduleSchema>

const stream = section(
  {
    ...forwarding,
    timeouts: timeouts('5m'),
    closeOnExpiry: flag({
      default: true,
      description: 'Close a websocket (code 1008) when the token that opened it expires or is revoked.',
    }),
  },
  {
    description: 'Forwards what takes long or is large: websockets, event streams, uploads, downloads.',
  },
)

const memory = section(
  { data: path({ description: 'JSON file with the sample data and with what each action does.' }) },
  { description: 'Sample data in memory. Changes are lost when the process ends.' },
)

const backendSchema = kinds(
  { memory, http: httpSchema, stream, module: moduleSchema },
  { description: 'One source of data.' },
)

export const backendsSchema = mapOf(backendSchema, {
  default: {},
  description: 'Where the data comes from, by a name that `areas` refer to.',
})

export type BackendConfig = Static<typeof backendSchema>
export type BackendOfKind<K extends BackendConfig['kind']> = Extract<BackendConfig, { kind: K }>
export type BackendsConfig = Readonly<Record<string, BackendConfig>>

/** The backend that a module runs around (C8.9); undefined for any other backend. */
export const backendUnder = (config: BackendConfig): string | undefined =>
  config.kind === 'module' ? config.over : undefined

export const clientCertificateOf = (config: BackendConfig): string | undefined =>
  config.kind === 'http' || config.kind === 'stream' ? config.tls.cert : undefined
