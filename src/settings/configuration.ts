/** The configuration of a deployment: the schema that joins those of the folders, and facts about the whole. */
import { auditSchema } from '../audit/schema.ts'
import { backendsSchema } from '../backends/schema.ts'
import { loadFile } from '../config/load.ts'
import type { Environment } from '../config/references.ts'
import type { Problems } from '../config/problems.ts'
import { choice, flag, optional, section, type Static, text } from '../config/schema.ts'
import { scopesSchema } from '../config/scopes/schema.ts'
import { directorySchema } from '../directory/schema.ts'
import {
  actionsSchema,
  areasSchema,
  defaultFormatSchema,
  tokenCacheSchema,
  vendorSchema,
} from '../gateway/schema.ts'
import { openapiSchema } from '../gateway/describe/schema.ts'
import { identitySchema } from '../identity/schema.ts'
import { developersSchema } from '../identity/developers/schema.ts'
import { keysSchema } from '../keys/schema.ts'
import { issuerNames, issuersSchema } from '../keys/issuers-schema.ts'
import { loadSchema } from '../limits/schema.ts'
import { type ClosableNames, maintenanceSchema } from '../maintenance/schema.ts'
import { workersSchema } from '../processes/worker-pool.ts'
import { serverSchema } from '../server/schema.ts'
import { storeSchema } from '../stores/schema.ts'
import { logSchema, metricsSchema } from '../watch/schema.ts'
import { adminSchema } from './admin.ts'
import { applyOverrides } from './overrides.ts'

export const configurationSchema = section({
  demo: flag({
    default: false,
    description: 'Marks a configuration whose secrets are public. It is served on a loopback address only.',
  }),
  server: serverSchema,
  admin: adminSchema,
  data: text({
    default: 'data',
    description: 'Folder for keys and state, relative to the working directory. It is created if missing.',
  }),
  dataGroup: choice(['others', 'own'], {
    default: 'others',
    description:
      'Who is in the group of the data folder: `others`, or only this service (`own`), as with a Kubernetes `fsGroup`.',
  }),
  workers: workersSchema,
  store: storeSchema,
  vendor: vendorSchema,
  defaultFormat: defaultFormatSchema,
  scopes: scopesSchema,
  directory: directorySchema,
  backends: backendsSchema,
  areas: areasSchema,
  actions: actionsSchema,
  openapi: optional(openapiSchema),
  tokenCache: tokenCacheSchema,
  identity: identitySchema,
  developers: developersSchema,
  keys: keysSchema,
  issuers: issuersSchema,
  load: loadSchema,
  maintenance: maintenanceSchema,
  audit: auditSchema,
  log: logSchema,
  metrics: metricsSchema,
})

export type Configuration = Static<typeof configurationSchema>

/** A configuration as far as it could be read. It is complete if the report has not failed. */
export interface ReadConfiguration {
  /** Values below the path of a problem must not be used. */
  readonly configuration: Configuration | undefined
  readonly problems: Problems
}

/** Reads a configuration file, the files it extends and the environment's overrides. Reports the schema's problems only. */
export function readConfiguration(file: string, environment: Environment): ReadConfiguration {
  const { value, problems } = loadFile(configurationSchema, file, environment)
  if (value === undefined) return { configuration: undefined, problems }
  return { configuration: applyOverrides(value, environment, problems), problems }
}

/** Whether it is a sidecar: it serves `/api` only, for tokens of foreign issuers, and writes nothing to disk (C11.2). */
export const isSidecar = ({ issuers }: Pick<Configuration, 'issuers'>): boolean => issuers.length > 0

type Named = Pick<Configuration, 'areas' | 'backends' | 'directory' | 'issuers'>

/**
 * The names that maintenance switches may use. Undefined where they are not known here: names in files of the directory,
 * clients of a sidecar's issuers, and a sidecar's businesses if it lists none.
 */
export function closableNames(configuration: Named): ClosableNames {
  const { areas, backends, directory } = configuration
  const { files, businesses, clients } = directory
  const sidecar = isSidecar(configuration)
  const hasBusinesses = !sidecar || Object.keys(businesses).length > 0
  return {
    area: new Set(Object.keys(areas)),
    backend: new Set(Object.keys(backends)),
    business: files.businesses === undefined && hasBusinesses ? new Set(Object.keys(businesses)) : undefined,
    issuer: issuerNames(configuration.issuers),
    stored: !sidecar,
    client: files.clients === undefined && !sidecar ? new Set(Object.keys(clients)) : undefined,
  }
}
