import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { ModuleFactory } from '../../contracts/module.ts'
import type { ModuleConfig } from './schema.ts'
import { contentsAsLoaded, contentsNow, importFile } from './files.ts'

/** Where a module is to be found: its file, or the name of a package. */
export type ModuleSource = { readonly file: string } | { readonly package: string }

/** Undefined where it names both a file and a package, or neither. */
export function sourceOf({ file, package: name }: ModuleConfig): ModuleSource | undefined {
  if (file !== undefined && name !== undefined) return undefined
  return file !== undefined ? { file } : name === undefined ? undefined : { package: name }
}

/** Imports a module. Rejects with an Error whose message says why it cannot be used. */
export async function loadFactory(source: ModuleSource): Promise<ModuleFactory> {
  const loaded = 'file' in source ? await importFile(source.file) : await importPackage(source.package)
  const factory = defaultOf(loaded)
  if (typeof factory === 'function') return factory as ModuleFactory
  throw new Error(`its default export is ${typeof factory}; expected a function that makes a backend`)
}

/** A package of the project that Postern was started in; else, for packages that only `import` finds, beside Postern. */
function importPackage(name: string): Promise<unknown> {
  const file = fileOf({ package: name })
  return file === undefined ? (import(/* @vite-ignore */ name) as Promise<unknown>) : importFile(file)
}

function fileOf(source: ModuleSource): string | undefined {
  if ('file' in source) return source.file
  try {
    return createRequire(join(process.cwd(), 'package.json')).resolve(source.package)
  } catch {
    return undefined
  }
}

/** What the files of an imported module hold, in one word: when they were imported, or now. */
export function contentsOf(source: ModuleSource, when: 'loaded' | 'now'): string {
  const file = fileOf(source)
  if (file === undefined) return ''
  return when === 'loaded' ? contentsAsLoaded(file) : contentsNow(file)
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
