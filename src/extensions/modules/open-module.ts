import { defaultExportOf } from '../../base/config/modules/import-file.ts'
import { openModule } from '../../base/config/modules/open-module.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { type Code, readCode } from '../../base/config/scopes/scope-token.ts'
import type { ModuleContext, ModuleFactory } from '../../base/contracts/calls/module.ts'
import { after } from '../../base/kernel/clock.ts'
import type { AddedBackend, BackendDependencies } from '../../gateway/backends/kinds.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import { isForbiddenResponseHeader } from '../../gateway/backends/forward/response/response.ts'
import { answeringModule } from './answering.ts'
import { userModule } from './module.ts'
import type { ModuleFailed } from './question.ts'
import type { ModuleConfig } from './schema.ts'

type ModuleDependencies = Pick<BackendDependencies, 'clock' | 'funds' | 'answerLimit' | 'moduleFailed'>

/**
 * Imports a module and lets its factory make it; undefined, and a problem reported, if it can't.
 * @param under the backend that forwards and that it runs around, if its section names one (C8.9)
 */
export async function openUserModule(
  name: string,
  config: ModuleConfig,
  problems: Problems,
  { clock, funds, answerLimit, moduleFailed }: ModuleDependencies,
  under?: HttpBackend,
): Promise<AddedBackend | undefined> {
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
  const module = await openModule(config, opening, async (exports) => {
    const made = await factoryOf(exports)(structuredClone(config.options), context)
    return answeringModule(made, under !== undefined)
  })
  const rules = { name, clock, after, timeout, idle, responseHeaders, answerLimit, failed }
  return module && userModule(module, rules, under)
}

function factoryOf(exports: unknown): ModuleFactory {
  const factory = defaultExportOf(exports)
  if (typeof factory === 'function') return factory as ModuleFactory
  throw new Error(`its default export is ${typeof factory}; expected a function that makes a module`)
}

function fundCode(text: string): Code {
  const code = readCode(text)
  if (code !== undefined) return code
  throw new TypeError(
    'addFund: a fund code is printable ASCII without spaces, slashes, quotes and backslashes (RFC 6749 §3.3)',
  )
}
