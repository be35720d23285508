import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ModuleFactory } from '../contracts/module.ts'

/** Where a module is to be found: its file, or the name of a package. */
export type ModuleSource = { readonly file: string } | { readonly package: string }

/** Imports a module. Rejects with an Error whose message says why it cannot be used. */
export async function loadFactory(source: ModuleSource): Promise<ModuleFactory> {
  const loaded = 'file' in source ? await importFile(source.file) : await importPackage(source.package)
  const factory = defaultOf(loaded)
  if (typeof factory === 'function') return factory as ModuleFactory
  throw new Error(`its default export is ${typeof factory}; expected a function that makes a backend`)
}

const importUrl = (url: string): Promise<unknown> => import(/* @vite-ignore */ url)

const importFile = (file: string): Promise<unknown> => importUrl(pathToFileURL(file).href)

/** A package of the project that Postern was started in; else, for packages that only `import` finds, beside Postern. */
function importPackage(name: string): Promise<unknown> {
  const project = createRequire(join(process.cwd(), 'package.json'))
  try {
    return importFile(project.resolve(name))
  } catch {
    return importUrl(name)
  }
}

/** Compilers that write CommonJS put the default export into another one. */
function defaultOf(loaded: unknown): unknown {
  const outer = memberOf(loaded, 'default')
  return typeof outer === 'function' ? outer : (memberOf(outer, 'default') ?? outer)
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && name in value
    ? (value as Record<string, unknown>)[name]
    : undefined
