/** Where the code of a module of the user's is to be found, and its import. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { opaque, optional, path, text } from '../schema.ts'
import { contentsAsLoaded, contentsNow, importFile, type LoadedFile, loadedFiles } from './import-file.ts'

/** The keys of a section that names a module. `makes` says what its default export makes. */
export const moduleKeys = (makes: string) => ({
  file: optional(path({ description: `TypeScript or JavaScript file whose default export makes ${makes}.` })),
  package: optional(
    text({ description: 'Instead of `file`: a JavaScript package, installed where Postern is started.' }),
  ),
  options: opaque<unknown>({
    default: {},
    description: 'Passed to the module as written. `{ env: … }` and `{ file: … }` are not resolved.',
  }),
})

/** What a section names, as far as it is read. */
export interface NamedModule {
  readonly file?: string | undefined
  readonly package?: string | undefined
}

/** Where a module is to be found: its file, or the name of a package. */
export type ModuleSource = { readonly file: string } | { readonly package: string }

/** Undefined where it names both a file and a package, or neither. */
export function sourceOf({ file, package: name }: NamedModule): ModuleSource | undefined {
  if (file !== undefined && name !== undefined) return undefined
  return file !== undefined ? { file } : name === undefined ? undefined : { package: name }
}

/** Imports a module: its exports, by name. Rejects with what the code throws, or with why it is not found. */
export const importSource = (source: ModuleSource): Promise<unknown> =>
  'file' in source ? importFile(source.file) : importPackage(source.package)

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

/** The default export. Compilers that write CommonJS put it into another one. */
export function defaultExportOf(exports: unknown): unknown {
  const outer = memberOf(exports, 'default')
  return typeof outer === 'function' ? outer : (memberOf(outer, 'default') ?? outer)
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && name in value
    ? (value as Record<string, unknown>)[name]
    : undefined

/** The files of a module that this thread has imported; none of a package that only `import` finds. */
export function loadedFilesOf(source: ModuleSource): readonly LoadedFile[] {
  const file = fileOf(source)
  return file === undefined ? [] : loadedFiles(file)
}

/**
 * A digest of what the files of an imported module held when they were imported, or hold now. Empty for what names no
 * module.
 */
export function contentsOf(named: NamedModule, when: 'loaded' | 'now'): string {
  const source = sourceOf(named)
  const file = source && fileOf(source)
  if (file === undefined) return ''
  return when === 'loaded' ? contentsAsLoaded(file) : contentsNow(file)
}
