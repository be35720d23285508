/** The configuration of a deployment: the schema that joins those of the folders, and facts about the whole. */
import { isDeepStrictEqual } from 'node:util'
import { backendsSchema } from '../../gateway/backends/schema.ts'
import { onlyLessens } from '../../base/config/lessens.ts'
import { loadFile, loadKey } from '../../base/config/load.ts'
import { type KeyPath, pathText, type SourceLocation, Problems } from '../../base/config/problems.ts'
import { choice, flag, optional, section, type Static, text, viewOf } from '../../base/config/schema.ts'
import { scopesSchema } from '../../base/config/scopes/schema.ts'
import type { Environment } from '../../base/config/validate.ts'
import { directorySchema } from '../../identity/directory/records/schema.ts'
import { openapiSchema } from '../../gateway/actions/description-schema.ts'
import {
  actionsSchema,
  areasSchema,
  defaultFormatSchema,
  schemasSchema,
  tokenCacheSchema,
  vendorSchema,
} from '../../gateway/actions/schema.ts'
import { identitySchema } from '../../identity/dependencies/schema.ts'
import { bindingOf, type ListenAddress, splitListenAddress } from '../../base/kernel/listen-address.ts'
import { isSidecar, issuerNames, issuersSchema } from '../../identity/keys/issuers/issuers-schema.ts'
import { keysSchema } from '../../identity/keys/signing/schema.ts'
import { loadSchema } from '../../gateway/limits/schema.ts'
import {
  type ClosableNames,
  compileMaintenance,
  maintenanceSchema,
} from '../../gateway/maintenance/schema.ts'
import { workersSchema } from '../../base/contracts/processes/worker-pool.ts'
import { serverSchema } from '../../gateway/server/schema.ts'
import { storeSchema } from '../../state/stores/schema.ts'
import { logSchema, metricsSchema } from '../watch/schema.ts'
import { adminSchema } from './admin.ts'

// Environment variables that override settings of any configuration (C10).

const MAX_PORT = 65_535
const ENVIRONMENT: SourceLocation = { file: 'environment', line: 0 }

function readPort(text: string): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : undefined
  return port !== undefined && port <= MAX_PORT ? port : undefined
}

function withPort(listen: string, port: number): string {
  const { host } = splitListenAddress(listen)
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The part of a configuration that the environment may override. */
export interface Overridable {
  readonly data: string
  readonly server: { readonly listen: string }
  readonly admin: { readonly listen: string }
}

/** The same where a part of the file could not be read. */
type Readable = Readonly<Partial<Record<'server' | 'admin', { readonly listen?: string }>>>

type Override = <T extends Overridable>(configuration: T, value: string) => T | undefined

const onPort =
  (section: 'server' | 'admin'): Override =>
  (configuration, value) => {
    const port = readPort(value)
    if (port === undefined) return undefined
    const { [section]: old }: Readable = configuration
    // The file has no address that can be read: that is reported.
    if (old?.listen === undefined) return configuration
    return { ...configuration, [section]: { ...old, listen: withPort(old.listen, port) } }
  }

interface Row {
  readonly expected: string
  readonly description: string
  readonly apply: Override
}

/** The overrides by name of the environment variable. An empty one counts as not set. */
export const OVERRIDES: Readonly<Record<string, Row>> = {
  POSTERN_PORT: {
    expected: 'a port from 0 to 65535',
    description: 'Port of `server.listen`, and of the URLs that are made from it. 0 means any free port.',
    apply: onPort('server'),
  },
  POSTERN_ADMIN_PORT: {
    expected: 'a port from 0 to 65535',
    description: 'Port of `admin.listen`. 0 means any free port.',
    apply: onPort('admin'),
  },
  POSTERN_DATA: {
    expected: 'a folder',
    description: 'The folder `data`, for keys and state.',
    apply: (configuration, data) => ({ ...configuration, data }),
  },
}

/** The configuration with the environment's overrides. An invalid value is reported as an error. */
export function applyOverrides<T extends Overridable>(
  configuration: T,
  environment: Environment,
  problems: Problems,
): T {
  let result = configuration
  for (const [name, { apply, expected }] of Object.entries(OVERRIDES)) {
    const value = environment[name]
    if (value === undefined || value === '') continue
    const next = apply(result, value)
    if (next) result = next
    else problems.errorAt(ENVIRONMENT, [name], `expected ${expected}, got ${JSON.stringify(value)}`)
  }
  return result
}

const dataSchema = text({
  default: 'data',
  description: 'Folder for keys and state, relative to the working directory. It is created if missing.',
})

export const configurationSchema = section({
  demo: flag({
    default: false,
    description: 'Marks a configuration whose secrets are public. It is served on a loopback address only.',
  }),
  server: serverSchema,
  admin: adminSchema,
  data: dataSchema,
  dataGroup: choice(['others', 'own'], {
    default: 'others',
    description:
      'Who is in the group of the data folder, and of `audit.folder`: `others`, or only this service (`own`), as with a Kubernetes `fsGroup`.',
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
  schemas: schemasSchema,
  openapi: optional(openapiSchema),
  tokenCache: tokenCacheSchema,
  identity: identitySchema,
  keys: keysSchema,
  issuers: issuersSchema,
  load: loadSchema,
  maintenance: maintenanceSchema,
  log: logSchema,
  metrics: metricsSchema,
})

export type Configuration = Static<typeof configurationSchema>

/** A configuration as far as it could be read. It is complete if `problems` has not failed. */
export interface ReadConfiguration {
  /** Values below the path of a problem must not be used. */
  readonly configuration: Configuration | undefined
  readonly problems: Problems
}

/**
 * Reads a configuration file, the files it extends and the environment's overrides. Reports the schema's problems only.
 *
 * @param schema `configurationSchema`, with the keys of extensions
 */
export function readConfiguration(
  schema: typeof configurationSchema,
  file: string,
  environment: Environment,
): ReadConfiguration {
  const { value, problems } = loadFile(schema, file, environment)
  if (value === undefined) return { configuration: undefined, problems }
  return { configuration: applyOverrides(value, environment, problems), problems }
}

/** The data folder that a file names, though it may have mistakes elsewhere. Undefined if that cannot be read. */
export const readDataFolder = (file: string, environment: Environment): string | undefined =>
  environment['POSTERN_DATA'] || loadKey(dataSchema, file, 'data', environment)

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

/** The maintenance switches of a configuration that was checked. */
export const configuredSwitches = (configuration: Configuration): ReturnType<typeof compileMaintenance> =>
  compileMaintenance(configuration.maintenance, closableNames(configuration), new Problems())

/**
 * Whether the second configuration differs from the first, and only by what it takes away (C12.1.4): clients, users,
 * what they may use, tokens of operators; or by what it closes. False if the directory is in files too: they may have
 * changed as well.
 *
 * @param schema `configurationSchema`, with the keys of extensions: one that it does not know takes nothing away
 */
export const onlyTakesAway = (
  schema: typeof configurationSchema,
  before: Configuration,
  after: Configuration,
): boolean =>
  Object.keys(after.directory.files).length === 0 &&
  !isDeepStrictEqual(before, after) &&
  onlyLessens(viewOf(schema), before, after)

/** Sections that are read at the start only. */
const FIXED: readonly string[] = ['server', 'admin', 'data', 'dataGroup', 'store', 'workers', 'keys', 'audit']

/** Exceptions: settings of these sections, with everything below them, that a reload does change. */
const LIVE = [
  'admin.tokens',
  'store.seal',
  'server.limits.body',
  'server.strictHeaderNames',
  'server.resourceMetadata',
  'server.cors',
  'server.outbound',
]

const isLive = (path: string): boolean => LIVE.some((live) => path === live || path.startsWith(`${live}.`))

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function changedPaths(before: unknown, after: unknown, path: KeyPath): KeyPath[] {
  if (isDeepStrictEqual(before, after)) return []
  if (!isSection(before) || !isSection(after)) return [path]
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => changedPaths(before[key], after[key], [...path, key]))
}

/** Every setting that differs, by key path. */
export const changedSettings = (before: Configuration, after: Configuration): readonly string[] =>
  changedPaths(before, after, []).map(pathText)

/** The settings that differ and need a restart, by key path. */
export function fixedChanges(before: Configuration, after: Configuration): readonly string[] {
  const of = (all: Readonly<Record<string, unknown>>, key: string): unknown => all[key]
  const changed = FIXED.flatMap((key) => changedPaths(of(before, key), of(after, key), [key])).map(pathText)
  // A sidecar opens other parts than a full service (C11.2). Which issuers a sidecar trusts may change.
  if (isSidecar(before) !== isSidecar(after)) changed.push('issuers')
  return changed.filter((path) => !isLive(path))
}

const MOST = 65_535

const isIPv6 = (host: string): boolean => host.includes(':')

/** Whether a listener at one address takes the connections that are for the other. `::` takes those by IPv4 too. */
const covers = (host: string, other: string): boolean =>
  host === other || host === '::' || (host === '0.0.0.0' && !isIPv6(other))

const meet = (one: ListenAddress, other: ListenAddress): boolean =>
  one.port !== 0 && one.port === other.port && (covers(one.host, other.host) || covers(other.host, one.host))

interface Listener {
  readonly name: string
  readonly path: KeyPath
  readonly address: string
}

function listenersOf({ server, admin }: Pick<Configuration, 'server' | 'admin'>): readonly Listener[] {
  const { probes } = admin
  return [
    { name: 'server.listen', path: ['server', 'listen'], address: server.listen },
    { name: 'admin.listen', path: ['admin', 'listen'], address: admin.listen },
    ...(probes === undefined ? [] : [{ name: 'admin.probes', path: ['admin', 'probes'], address: probes }]),
  ]
}

/** Reports ports that do not exist, and the same port for two listeners at one address. Port 0 is any free one. */
export function checkListeners(configuration: Configuration, problems: Problems): void {
  const before: Listener[] = []
  for (const listener of listenersOf(configuration)) {
    const { path, address } = listener
    const own = bindingOf(address)
    if (own.port > MOST) problems.error(path, `expected a port from 0 to ${MOST}, got ${own.port}`)
    const other = before.find((each) => meet(bindingOf(each.address), own))
    if (other !== undefined)
      problems.error(
        path,
        `has the port of ${other.name}: ${own.port}`,
        'give each listener a port of its own',
      )
    before.push(listener)
  }
}
