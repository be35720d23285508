/** The configuration of backends. They are opened in open.ts, so that code which only reads a file loads little. */
import { kinds, mapOf, path, section, type Static } from '../../base/config/schema.ts'
import { forwarding, httpSchema, timeouts } from './forward/schema/schema.ts'

const stream = section(
  {
    ...forwarding,
    timeouts: timeouts('5m'),
  },
  { description: 'Forwards what takes long or is large: event streams, uploads, downloads.' },
)

const memory = section(
  { data: path({ description: 'JSON file with the sample data and with what each action does.' }) },
  { description: 'Sample data in memory. Changes are lost when the process ends.' },
)

const backendSchema = kinds({ memory, http: httpSchema, stream }, { description: 'One source of data.' })

export const backendsSchema = mapOf(backendSchema, {
  default: {},
  description: 'Where the data comes from, by a name that `areas` refer to.',
})

export type BackendConfig = Static<typeof backendSchema>
export type BackendOfKind<K extends BackendConfig['kind']> = Extract<BackendConfig, { kind: K }>
export type BackendsConfig = Readonly<Record<string, BackendConfig>>

/** The name of the backend that this one runs around (`over`). Only kinds of extensions have it. Undefined for all others. */
export const backendUnder = (config: BackendConfig): string | undefined =>
  (config as { readonly over?: string }).over

export const clientCertificateOf = (config: BackendConfig): string | undefined =>
  config.kind === 'http' || config.kind === 'stream' ? config.tls.cert : undefined
