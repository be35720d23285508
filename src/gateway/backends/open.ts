import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { reportUnknownName } from '../../base/config/problem-text.ts'
import type { Problems } from '../../base/config/problems.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { compileForwarding, readOrReport } from './forward/compile-forwarding.ts'
import {
  compileOperationBackend,
  compileUnmatched,
  type ForwardedOperation,
} from './forward/compile-request.ts'
import type { HttpBackend } from './forward/http.ts'
import { type BoundNames, boundNames } from './forward/kept-out.ts'
import type { AddedBackends, BackendDependencies, OpenedBackend } from './kinds.ts'
import { type BackendConfig, type BackendOfKind, type BackendsConfig, backendUnder } from './schema.ts'

/**
 * Opens every configured backend, or reports why not. Only the chosen kinds are imported: an unused proxy library costs
 * start time. None connects before its first call.
 * @param reused backends that are open already, which others may run around
 */
export async function compileBackends(
  slice: BackendsConfig,
  problems: Problems,
  dependencies: BackendDependencies,
  reused: ReadonlyMap<string, OpenedBackend> = new Map(),
): Promise<ReadonlyMap<string, OpenedBackend>> {
  const all = Object.entries(slice)
  const around = all.flatMap(([name, config]) => (isOverAnother(config) ? [[name, config] as const] : []))
  const others = all.filter(([, config]) => !isOverAnother(config))
  const opened = await openAll(others, (name, config) => openBackend(name, config, problems, dependencies))
  const open = new Map([...reused, ...opened])
  const outer = await openAll(around, (name, config) =>
    openOver(name, config, { slice, open }, problems, dependencies),
  )
  return new Map([...opened, ...outer])
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

function openBackend(
  name: string,
  config: BackendConfig,
  problems: Problems,
  dependencies: BackendDependencies,
): Promise<OpenedBackend | undefined> {
  const added = dependencies.addedBackends.kinds.get(config.kind)
  if (added !== undefined) return added.open(name, config, problems, dependencies)
  return config.kind === 'memory'
    ? openMemory(name, config, problems, dependencies)
    : openForwarding(name, config, problems, dependencies)
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
  const { addedBackends, clock } = dependencies
  if (config.kind === 'stream' && addedBackends.upgrade !== undefined)
    return withViews(await addedBackends.upgrade.open(config, rules, clock))
  const { HttpBackend } = await import('./forward/http.ts')
  return withViews(new HttpBackend(rules, clock))
}

const withViews = (backend: HttpBackend): OpenedBackend =>
  Object.assign(backend, {
    forOperation: (operation: ForwardedOperation, problems: Problems) =>
      compileOperationBackend(backend, operation, problems),
    forUnmatched: (area: string, bound: BoundNames, problems: Problems) =>
      compileUnmatched(backend, area, bound, problems),
    ...namesOf(backend),
  })

const namesOf = ({ name, rules }: HttpBackend): Pick<OpenedBackend, 'boundNames' | 'service'> => ({
  boundNames: (upstream) => boundNames(rules, upstream),
  service: name,
})

const reasonOf = (error: unknown): string =>
  error instanceof Fault ? (error.facts.say ?? error.code) : messageOf(error)

/** A section that names the backend which it runs around. */
interface OverAnother {
  readonly kind: BackendConfig['kind']
  readonly over: string
}

interface OtherBackends {
  /** The sections of the backends that are opened now. */
  readonly slice: Readonly<Record<string, { readonly kind: string }>>
  /** The backends that are open, except those around others. */
  readonly open: ReadonlyMap<string, OpenedBackend>
}

/** A backend around one that forwards, and around that one's views. */
async function openOver(
  name: string,
  config: OverAnother,
  others: OtherBackends,
  problems: Problems,
  dependencies: BackendDependencies,
): Promise<OpenedBackend | undefined> {
  const under = others.open.get(config.over)
  if (!isForwarder(under)) {
    reportUnder(name, config.over, others, problems)
    return undefined
  }
  const [first, ...more] = under.rules.targets
  if (more.some(({ basePath }) => basePath !== first?.basePath))
    problems.error(['backends', name, 'over'], 'names a backend whose targets have different paths')
  const added = dependencies.addedBackends.kinds.get(config.kind)
  if (added === undefined) throw runsAroundNone(config)
  const outer = await added.open(name, config, problems, dependencies, under)
  if (outer === undefined) return undefined
  const { around } = outer
  if (around === undefined) throw runsAroundNone(config)
  return Object.assign(outer, {
    forOperation: (operation: ForwardedOperation, problems: Problems) => {
      if (operation.calls.reportOnly)
        problems.error(operation.at, `is report-only, and ${name} takes no unverified calls`)
      const view = compileOperationBackend(under, operation, problems)
      return view === under ? outer : around.call(outer, view)
    },
    ...namesOf(under),
  })
}

const runsAroundNone = ({ kind }: OverAnother): TypeError =>
  new TypeError(`a backend of kind ${kind} runs around no other`)

/** Reports a wrong `over`. A backend that forwards and is not open has been reported itself. */
function reportUnder(name: string, over: string, { slice, open }: OtherBackends, problems: Problems): void {
  const kind = slice[over]?.kind
  const at = ['backends', name, 'over']
  if (kind === undefined && !open.has(over))
    reportUnknownName(problems, at, 'backend', over, new Set([...Object.keys(slice), ...open.keys()]))
  else if (kind !== 'http' && kind !== 'stream')
    problems.error(at, 'names a backend that does not forward; expected one of kind http or stream')
}

const isForwarder = (backend: OpenedBackend | undefined): backend is OpenedBackend & HttpBackend =>
  backend !== undefined && 'withRules' in backend

/**
 * Digests of the files that a backend has besides the configuration: it is to be opened anew when one has changed, though its
 * section is the same. Taken before it is opened (`now`), so that a file that changes meanwhile counts as changed; for an
 * added kind, whose files are known once it is open, also of what was `loaded`.
 */
export async function contentsOfBackend(
  config: BackendConfig,
  when: 'now' | 'loaded',
  { kinds }: AddedBackends,
): Promise<string> {
  const added = kinds.get(config.kind)
  if (added !== undefined) return added.contents(config, when)
  const files = config.kind === 'memory' ? [config.data] : filesOfForwarder(config)
  const digests = await Promise.all(files.map(digestOfFile))
  return digests.join(' ')
}

const filesOfForwarder = ({ tls, auth }: BackendOfKind<'http' | 'stream'>) => [
  tls.ca,
  tls.cert,
  tls.key,
  auth?.oauth2?.tls.ca,
]

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
