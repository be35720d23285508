import { timerMs } from '../../kernel/clock.ts'
import type { KeyPath, Problems } from '../problems.ts'
import { onAccountOf } from './blame.ts'
import { importSource, type ModuleSource, type NamedModule, sourceOf } from './import-file.ts'

interface ReportedOpening {
  /** The key of the section that names the module. */
  readonly at: KeyPath
  readonly problems: Problems
}

interface ModuleOpening extends ReportedOpening {
  /** How long its import and its making may take, in milliseconds. */
  readonly timeout: number
  /** Called with what its code throws meanwhile where nobody catches. Must not throw. */
  readonly failed: (thrown: unknown) => void
}

/**
 * Imports a module and makes something of its exports. Undefined, and a problem reported, if that fails: the module is
 * not found or does not parse, it throws, `make` throws, or it takes too long.
 */
export const openModule = <T>(
  named: NamedModule,
  opening: ModuleOpening,
  make: (exports: unknown) => T | Promise<T>,
): Promise<T | undefined> =>
  openSource(named, opening, (source) =>
    inTime(
      opening.timeout,
      onAccountOf(opening, async () => make(await importSource(source))),
    ),
  )

/** Opens what a section names, in whatever way. Undefined, and a problem reported, if that fails. */
export async function openSource<T>(
  named: NamedModule,
  { at, problems }: ReportedOpening,
  open: (source: ModuleSource) => Promise<T>,
): Promise<T | undefined> {
  const source = sourceOf(named)
  if (source === undefined) {
    problems.error(at, 'needs either `file` or `package`: where the module is')
    return undefined
  }
  try {
    return await open(source)
  } catch (error) {
    problems.error(
      [...at, 'file' in source ? 'file' : 'package'],
      `names a module that is not usable: ${errorInWords(error)}`,
    )
    return undefined
  }
}

/** A module that is never ready must not keep the service from reporting it. */
function inTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  // It keeps the process alive, which may have nothing else to wait for.
  const timer = setTimeout(() => reject(new Error(`it took more than ${ms} ms to be made`)), timerMs(ms))
  void work.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}

/** With the class of the error, which says more than many a message: `SyntaxError: Unexpected token`. */
export const errorInWords = (error: unknown): string =>
  error instanceof Error
    ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}`
    : String(error)
