import type { KeyPath, Report } from '../../config/report.ts'
import type { Backend } from '../../contracts/backend.ts'
import type { ModuleBackend, ModuleContext, ModuleFactory } from '../../contracts/module.ts'
import type { FundRegistry } from '../../contracts/places.ts'
import { type Clock, timerMs } from '../../kernel/clock.ts'
import { readCode, type Code } from '../../scopes/scope-token.ts'
import { loadFactory, type ModuleConfig, sourceOf } from './load.ts'
import { onAccountOf } from './answer.ts'
import { UserModule, type ModuleFailed } from './module.ts'
import { isForbiddenResponseHeader } from '../forward/response.ts'

export interface ModuleDependencies {
  readonly clock: Clock
  readonly funds: FundRegistry | undefined
  readonly answerLimit: number
  /** Told of what a module's code threw where nobody could catch it. */
  readonly moduleFailed: (backend: string, thrown: unknown, call: string | undefined) => void
}

/** Imports a module and lets it make its backend; undefined, and a problem reported, if it can't. */
export async function openModule(
  name: string,
  config: ModuleConfig,
  report: Report,
  { clock, funds, answerLimit, moduleFailed }: ModuleDependencies,
): Promise<Backend | undefined> {
  const at: KeyPath = ['backends', name]
  for (const [index, header] of config.responseHeaders.entries())
    if (isForbiddenResponseHeader(header))
      report.error([...at, 'responseHeaders', index], 'is a header that a module cannot set')
  const source = sourceOf(config)
  if (source === undefined) {
    report.error(at, 'needs either `file` or `package`: where the module is')
    return undefined
  }
  const context: ModuleContext = {
    name,
    addFund: (business, fund) => funds?.addFund(business, fundCode(fund)),
  }
  const { timeout, idle, responseHeaders } = config
  const failed: ModuleFailed = (thrown, call) => moduleFailed(name, thrown, call)
  const opening = { failed: (thrown: unknown) => failed(thrown, undefined) }
  try {
    const making = onAccountOf(opening, async () => make(await loadFactory(source), config.options, context))
    const module = await inTime(timeout, making)
    return new UserModule(module, { name, timeout, idle, responseHeaders, answerLimit, failed }, clock)
  } catch (error) {
    report.error(
      [...at, 'file' in source ? 'file' : 'package'],
      `names a module that is not usable: ${reasonOf(error)}`,
    )
    return undefined
  }
}

function fundCode(text: string): Code {
  const code = readCode(text)
  if (code !== undefined) return code
  throw new TypeError(
    'addFund: a fund code is printable ASCII without spaces, slashes, quotes and backslashes (RFC 6749 §3.3)',
  )
}

async function make(
  factory: ModuleFactory,
  options: unknown,
  context: ModuleContext,
): Promise<ModuleBackend> {
  const made: unknown = await factory(structuredClone(options), context)
  if (isBackend(made)) return made
  throw new Error('what it made has no function `answer`')
}

const isBackend = (made: unknown): made is ModuleBackend =>
  typeof made === 'object' && made !== null && 'answer' in made && typeof made.answer === 'function'

/** A module that never comes to an end of its making must not keep the service from telling so. */
function inTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  // It keeps the process alive, which may have nothing else to wait for.
  const timer = setTimeout(() => reject(new Error(`it took more than ${ms} ms to be made`)), timerMs(ms))
  void work.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}

/** With the class of the error, which says more than many a message: `SyntaxError: Unexpected token`. */
const reasonOf = (error: unknown): string =>
  error instanceof Error
    ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}`
    : String(error)
