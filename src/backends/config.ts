import { flag, kinds, mapOf, path, section, type Static } from '../config/schema.ts'
import type { Report } from '../config/report.ts'
import type { Backend } from '../contracts/backend.ts'
import type { FundRegistry } from '../contracts/places.ts'
import { Fault } from '../kernel/faults.ts'
import { compileForwarding, type ForwardingDependencies } from './forward/compile-forwarding.ts'
import {
  checkUnmatchedCalls,
  compileOperationBackend,
  type ForwardedOperation,
  type Shapeable,
} from './forward/compile-operation.ts'
import { readOrReport } from './forward/compile-tls.ts'
import { timeouts } from './forward/request-schema.ts'
import { forwarding, httpSchema } from './forward/schema.ts'
import { contentsOf } from '../modules/source.ts'
import { moduleSchema } from './module/schema.ts'
import type { OpenedBackend } from './opened-backend.ts'
import { openOver, type OverAnother } from './over/open.ts'

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'

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

export const backendSchema = kinds(
  { memory, http: httpSchema, stream, module: moduleSchema },
  { description: 'One source of data.' },
)

export const backendsSchema = mapOf(backendSchema, {
  default: {},
  description: 'Where the data comes from, by a name that `areas` refer to.',
})

export type BackendConfig = Static<typeof backendSchema>
export type BackendsConfig = Readonly<Record<string, BackendConfig>>

/** What backends need of the rest of the deployment. */
export interface BackendDependencies extends ForwardingDependencies {
  /** Told of funds that a backend creates. */
  readonly funds: FundRegistry | undefined
  /** Most bytes of an answer that is held: `server.limits.answer`. */
  readonly answerLimit: number
  /** Told of what a module's code threw where no call could be failed for it. */
  readonly moduleFailed: (backend: string, thrown: unknown, call: string | undefined) => void
}

/**
 * Opens every configured backend, or reports why not. Only the chosen kinds are imported: an unused proxy library costs
 * start time. None connects before its first call.
 * @param kept backends that are open already, which a module may run around
 */
export async function compileBackends(
  slice: BackendsConfig,
  report: Report,
  dependencies: BackendDependencies,
  kept: ReadonlyMap<string, OpenedBackend> = new Map(),
): Promise<ReadonlyMap<string, OpenedBackend>> {
  const all = Object.entries(slice)
  const around = all.flatMap(([name, config]) => (isOverAnother(config) ? [[name, config] as const] : []))
  const others = all.filter(([, config]) => !isOverAnother(config))
  const opened = await openAll(others, (name, config) => openBackend(name, config, report, dependencies))
  const open = new Map([...kept, ...opened])
  const modules = await openAll(around, (name, config) =>
    openOver(name, config, { slice, open }, report, dependencies),
  )
  return new Map([...opened, ...modules])
}

async function openAll<C>(
  entries: readonly (readonly [string, C])[],
  open: (name: string, config: C) => Promise<OpenedBackend | undefined>,
): Promise<ReadonlyMap<string, OpenedBackend>> {
  const opened = entries.map(async ([name, config]) => {
    const backend = await open(name, config)
    return backend === undefined ? [] : [[name, backend] as const]
  })
  return new Map((await Promise.all(opened)).flat())
}

/** The backend that a module runs around (C8.9); undefined for any other backend. */
export const backendUnder = (config: BackendConfig): string | undefined =>
  config.kind === 'module' ? config.over : undefined

const isOverAnother = (config: BackendConfig): config is BackendConfig & OverAnother =>
  backendUnder(config) !== undefined

type Of<K extends BackendConfig['kind']> = Extract<BackendConfig, { kind: K }>

async function openBackend(
  name: string,
  config: BackendConfig,
  report: Report,
  dependencies: BackendDependencies,
): Promise<OpenedBackend | undefined> {
  if (config.kind === 'memory') return openMemory(name, config, report, dependencies)
  if (config.kind !== 'module') return openForwarding(name, config, report, dependencies)
  const { openBackendModule } = await import('./module/open.ts')
  return openBackendModule(name, config, report, dependencies)
}

async function openMemory(
  name: string,
  { data }: Of<'memory'>,
  report: Report,
  { funds }: BackendDependencies,
): Promise<Backend | undefined> {
  const bytes = await readOrReport(data, ['backends', name, 'data'], report)
  if (bytes === undefined) return undefined
  const [{ MemoryBackend }, { parseMemoryFile }] = await Promise.all([
    import('./memory/memory.ts'),
    import('./memory/file.ts'),
  ])
  try {
    return new MemoryBackend(name, parseMemoryFile(bytes), funds)
  } catch (error) {
    report.error(['backends', name, 'data'], `names a file that is not usable: ${reasonOf(error)}`)
    return undefined
  }
}

async function openForwarding(
  name: string,
  config: Of<'http' | 'stream'>,
  report: Report,
  dependencies: BackendDependencies,
): Promise<OpenedBackend | undefined> {
  const rules = await compileForwarding(name, config, report, dependencies)
  if (rules === undefined) return undefined
  if (config.kind === 'stream') {
    const { StreamBackend } = await import('./forward/stream.ts')
    return withViews(new StreamBackend({ ...rules, closeOnExpiry: config.closeOnExpiry }, dependencies.clock))
  }
  const { HttpBackend } = await import('./forward/http.ts')
  return withViews(new HttpBackend(rules, dependencies.clock))
}

const withViews = (backend: Shapeable): OpenedBackend =>
  Object.assign(backend, {
    forOperation: (operation: ForwardedOperation, report: Report) =>
      compileOperationBackend(backend, operation, report),
    checkUnmatched: (area: string, report: Report) => checkUnmatchedCalls(backend, area, report),
  })

const reasonOf = (error: unknown): string => {
  if (error instanceof Fault) return error.facts.say ?? error.code
  return error instanceof Error ? error.message : 'it could not be read'
}

/** The file of the certificate that a backend shows to its upstream, if it shows one. */
export const clientCertificateOf = (config: BackendConfig): string | undefined =>
  config.kind === 'http' || config.kind === 'stream' ? config.tls.cert : undefined

/** The files beside the configuration that a backend consists of, but for a module's, which it finds by itself. */
const FILES: {
  readonly [K in Exclude<BackendConfig['kind'], 'module'>]: (config: Of<K>) => (string | undefined)[]
} = {
  memory: ({ data }) => [data],
  http: ({ tls, auth }) => [tls.ca, tls.cert, tls.key, auth?.oauth2?.tls.ca],
  stream: ({ tls, auth }) => [tls.ca, tls.cert, tls.key, auth?.oauth2?.tls.ca],
}

/**
 * What the files of a backend hold, in one word: a backend is to be opened anew when they have changed, though its
 * configuration names the same ones. Taken before it is opened (`now`), so that what changes meanwhile counts as
 * changed; for a module, whose files are known once it is, also of what was `loaded`.
 */
export async function contentsOfBackend(config: BackendConfig, when: 'now' | 'loaded'): Promise<string> {
  if (config.kind === 'module') return contentsOf(config, when)
  const read = FILES[config.kind] as (config: BackendConfig) => (string | undefined)[]
  const digests = await Promise.all(read(config).map(digestOfFile))
  return digests.join(' ')
}

async function digestOfFile(file: string | undefined): Promise<string> {
  if (file === undefined) return '-'
  try {
    return createHash('sha256')
      .update(await readFile(file))
      .digest('base64url')
  } catch {
    return 'unreadable'
  }
}
