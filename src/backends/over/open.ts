import { reportUnknownName } from '../../config/unknown-name.ts'
import type { Problems } from '../../config/problems.ts'
import {
  compileOperationBackend,
  type ForwardedOperation,
  type Shapeable,
} from '../forward/compile-operation.ts'
import type { ModuleDependencies } from '../module/open.ts'
import type { ModuleConfig } from '../module/schema.ts'
import type { OpenedBackend } from '../opened-backend.ts'

/** The section of a module that names the backend which it runs around. */
export interface OverAnother extends ModuleConfig {
  readonly over: string
}

export interface OtherBackends {
  /** Those that are opened now. */
  readonly slice: Readonly<Record<string, { readonly kind: string }>>
  /** Those that are open, but for modules around others. */
  readonly open: ReadonlyMap<string, OpenedBackend>
}

/** A module around a backend that forwards, and around that backend's views. */
export async function openOver(
  name: string,
  config: OverAnother,
  others: OtherBackends,
  problems: Problems,
  dependencies: ModuleDependencies,
): Promise<OpenedBackend | undefined> {
  const under = others.open.get(config.over)
  if (!isShapeable(under)) {
    reportUnder(name, config.over, others, problems)
    return undefined
  }
  const [first, ...more] = under.sender.targets.all
  if (more.some(({ address }) => address.basePath !== first?.address.basePath))
    problems.error(['backends', name, 'over'], 'names a backend whose targets have different paths')
  const { openForwardingModule } = await import('../module/open.ts')
  const around = await openForwardingModule(name, config, under, problems, dependencies)
  if (around === undefined) return undefined
  return Object.assign(around, {
    forOperation: (operation: ForwardedOperation, problems: Problems) => {
      if (operation.calls.reportOnly)
        problems.error(
          operation.at,
          `is report-only, and ${name} is a module, which takes no unverified calls`,
        )
      const view = compileOperationBackend(under, operation, problems)
      return view === under ? around : around.around(view)
    },
  })
}

/** One that forwards and is not open has been reported itself. */
function reportUnder(name: string, over: string, { slice, open }: OtherBackends, problems: Problems): void {
  const kind = slice[over]?.kind
  const at = ['backends', name, 'over']
  if (kind === undefined && !open.has(over))
    reportUnknownName(problems, at, 'backend', over, new Set([...Object.keys(slice), ...open.keys()]))
  else if (kind !== 'http' && kind !== 'stream')
    problems.error(at, 'names a backend that does not forward; expected one of kind http or stream')
}

const isShapeable = (backend: OpenedBackend | undefined): backend is OpenedBackend & Shapeable =>
  backend !== undefined && 'withRules' in backend
