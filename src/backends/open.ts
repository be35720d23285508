/** Opens the configured backends. */
import type { Problems } from '../config/problems.ts'
import type { Backend } from '../contracts/backend.ts'
import type { FundRegistry } from '../contracts/places.ts'
import { Fault } from '../kernel/faults.ts'
import { type BackendConfig, type BackendOfKind, type BackendsConfig, backendUnder } from './schema.ts'
import { compileForwarding, type ForwardingDependencies } from './forward/compile-forwarding.ts'
import {
  checkUnmatchedCalls,
  compileOperationBackend,
  type ForwardedOperation,
  type Shapeable,
} from './forward/compile-operation.ts'
import { readOrReport } from './forward/compile-tls.ts'
import type { OpenedBackend } from './opened-backend.ts'
import { openOver, type OverAnother } from './over/open.ts'

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
  problems: Problems,
  dependencies: BackendDependencies,
  kept: ReadonlyMap<string, OpenedBackend> = new Map(),
): Promise<ReadonlyMap<string, OpenedBackend>> {
  const all = Object.entries(slice)
  const around = all.flatMap(([name, config]) => (isOverAnother(config) ? [[name, config] as const] : []))
  const others = all.filter(([, config]) => !isOverAnother(config))
  const opened = await openAll(others, (name, config) => openBackend(name, config, problems, dependencies))
  const open = new Map([...kept, ...opened])
  const modules = await openAll(around, (name, config) =>
    openOver(name, config, { slice, open }, problems, dependencies),
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

const isOverAnother = (config: BackendConfig): config is BackendConfig & OverAnother =>
  backendUnder(config) !== undefined

async function openBackend(
  name: string,
  config: BackendConfig,
  problems: Problems,
  dependencies: BackendDependencies,
): Promise<OpenedBackend | undefined> {
  if (config.kind === 'memory') return openMemory(name, config, problems, dependencies)
  if (config.kind !== 'module') return openForwarding(name, config, problems, dependencies)
  const { openBackendModule } = await import('./module/open.ts')
  return openBackendModule(name, config, problems, dependencies)
}

async function openMemory(
  name: string,
  { data }: BackendOfKind<'memory'>,
  problems: Problems,
  { funds }: BackendDependencies,
): Promise<Backend | undefined> {
  const bytes = await readOrReport(data, ['backends', name, 'data'], problems)
  if (bytes === undefined) return undefined
  const [{ MemoryBackend }, { parseMemoryFile }] = await Promise.all([
    import('./memory/memory.ts'),
    import('./memory/file.ts'),
  ])
  try {
    return new MemoryBackend(name, parseMemoryFile(bytes), funds)
  } catch (error) {
    problems.error(['backends', name, 'data'], `names a file that is not usable: ${reasonOf(error)}`)
    return undefined
  }
}

async function openForwarding(
  name: string,
  config: BackendOfKind<'http' | 'stream'>,
  problems: Problems,
  dependencies: BackendDependencies,
): Promise<OpenedBackend | undefined> {
  const rules = await compileForwarding(name, config, problems, dependencies)
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
    forOperation: (operation: ForwardedOperation, problems: Problems) =>
      compileOperationBackend(backend, operation, problems),
    checkUnmatched: (area: string, problems: Problems) => checkUnmatchedCalls(backend, area, problems),
  })

const reasonOf = (error: unknown): string => {
  if (error instanceof Fault) return error.facts.say ?? error.code
  return error instanceof Error ? error.message : 'it could not be read'
}
