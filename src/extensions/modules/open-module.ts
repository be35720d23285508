import { defaultExportOf } from '../../base/config/modules/import-file.ts'
import { openModule } from '../../base/config/modules/open-module.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { type Code, readCode } from '../../base/config/scopes/scope-token.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import type {
  ForwardingModule,
  ModuleBackend,
  ModuleContext,
  ModuleFactory,
} from '../../base/contracts/calls/module.ts'
import type { BackendDependencies } from '../../gateway/backends/kinds.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import { isForbiddenResponseHeader } from '../../gateway/backends/forward/response/response.ts'
import { ModuleOverForwarder } from './over.ts'
import type { ModuleConfig } from './schema.ts'
import { type ModuleFailed, type ModuleRules, UserModule } from './module.ts'

type ModuleDependencies = Pick<BackendDependencies, 'clock' | 'funds' | 'answerLimit' | 'moduleFailed'>

/** Imports a module and lets it make its backend; undefined, and a problem reported, if it can't. */
export async function openBackendModule(
  name: string,
  config: ModuleConfig,
  problems: Problems,
  dependencies: ModuleDependencies,
): Promise<Backend | undefined> {
  const opened = await openUserModule(name, config, problems, dependencies, asBackend)
  return opened && new UserModule(opened.module, opened.rules, dependencies.clock)
}

/** The same around a backend that forwards (C8.9). */
export async function openForwardingModule(
  name: string,
  config: ModuleConfig,
  under: HttpBackend,
  problems: Problems,
  dependencies: ModuleDependencies,
): Promise<ModuleOverForwarder | undefined> {
  const opened = await openUserModule(name, config, problems, dependencies, asForwardingModule)
  return opened && new ModuleOverForwarder(opened.module, under, opened.rules, dependencies.clock)
}

/** @param check throws an Error that says why what the module made cannot be used */
async function openUserModule<T>(
  name: string,
  config: ModuleConfig,
  problems: Problems,
  { funds, answerLimit, moduleFailed }: ModuleDependencies,
  check: (made: unknown) => T,
): Promise<{ readonly module: T; readonly rules: ModuleRules } | undefined> {
  const at: KeyPath = ['backends', name]
  for (const [index, header] of config.responseHeaders.entries())
    if (isForbiddenResponseHeader(header))
      problems.error([...at, 'responseHeaders', index], 'is a header that a module cannot set')
  const addFund = (business: string, fund: Code): Promise<void> => {
    const added = funds?.addFund(business, fund) ?? Promise.resolve()
    // A module need not wait for it: then only the log has the failure.
    added.catch((thrown: unknown) => moduleFailed(name, thrown, undefined))
    return added
  }
  const context: ModuleContext = {
    name,
    addFund: (business, fund) => addFund(business, fundCode(fund)),
  }
  const { timeout, idle, responseHeaders } = config
  const failed: ModuleFailed = (thrown, call) => moduleFailed(name, thrown, call)
  const opening = { at, problems, timeout, failed: (thrown: unknown) => failed(thrown, undefined) }
  const module = await openModule(config, opening, (exports) =>
    Promise.resolve(factoryOf(exports)(structuredClone(config.options), context)).then(check),
  )
  if (module === undefined) return undefined
  return { module, rules: { name, timeout, idle, responseHeaders, answerLimit, failed } }
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

function asBackend(made: unknown): ModuleBackend {
  if (hasFunction(made, 'answer')) return made as ModuleBackend
  throw new Error('what it made has no function `answer`')
}

function asForwardingModule(made: unknown): ForwardingModule {
  const around = hasFunction(made, 'request') || hasFunction(made, 'response')
  if (hasFunction(made, 'answer') !== around) return made as ForwardingModule
  throw new Error(
    around
      ? 'what it made has `answer` beside `request` or `response`; expected one of the two ways'
      : 'what it made has none of the functions `request`, `response` and `answer`',
  )
}

const hasFunction = (made: unknown, name: string): boolean =>
  typeof made === 'object' &&
  made !== null &&
  name in made &&
  typeof (made as Readonly<Record<string, unknown>>)[name] === 'function'
