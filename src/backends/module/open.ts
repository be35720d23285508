import type { KeyPath, Report } from '../../config/report.ts'
import type { Backend } from '../../contracts/backend.ts'
import type { ModuleBackend, ModuleContext, ModuleFactory } from '../../contracts/module.ts'
import type { FundRegistry } from '../../contracts/places.ts'
import type { Clock } from '../../kernel/clock.ts'
import { openModule } from '../../modules/open-module.ts'
import { defaultExportOf } from '../../modules/source.ts'
import { readCode, type Code } from '../../scopes/scope-token.ts'
import { UserModule } from './module.ts'
import type { ModuleFailed } from './question.ts'
import type { ModuleConfig } from './schema.ts'
import { isForbiddenResponseHeader } from '../forward/response.ts'

export interface ModuleDependencies {
  readonly clock: Clock
  readonly funds: FundRegistry | undefined
  readonly answerLimit: number
  /** Told of what a module's code threw where nobody could catch it. */
  readonly moduleFailed: (backend: string, thrown: unknown, call: string | undefined) => void
}

/** Imports a module and lets it make its backend; undefined, and a problem reported, if it can't. */
export async function openBackendModule(
  name: string,
  config: ModuleConfig,
  report: Report,
  { clock, funds, answerLimit, moduleFailed }: ModuleDependencies,
): Promise<Backend | undefined> {
  const at: KeyPath = ['backends', name]
  for (const [index, header] of config.responseHeaders.entries())
    if (isForbiddenResponseHeader(header))
      report.error([...at, 'responseHeaders', index], 'is a header that a module cannot set')
  const context: ModuleContext = {
    name,
    addFund: (business, fund) => funds?.addFund(business, fundCode(fund)),
  }
  const { timeout, idle, responseHeaders } = config
  const failed: ModuleFailed = (thrown, call) => moduleFailed(name, thrown, call)
  const opening = { at, report, timeout, failed: (thrown: unknown) => failed(thrown, undefined) }
  const module = await openModule(config, opening, (exports) =>
    make(factoryOf(exports), config.options, context),
  )
  if (module === undefined) return undefined
  return new UserModule(module, { name, timeout, idle, responseHeaders, answerLimit, failed }, clock)
}

function factoryOf(exports: unknown): ModuleFactory {
  const factory = defaultExportOf(exports)
  if (typeof factory === 'function') return factory as ModuleFactory
  throw new Error(`its default export is ${typeof factory}; expected a function that makes a backend`)
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
