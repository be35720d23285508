import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { opaque, optional, path, text } from '../schema.ts'

/**
 * The files that modules consist of. Node imports a URL once and for ever: code that has changed is taken up under
 * another URL, the file's with a number, and so is all that it imports by relative names. What it imports by the name of
 * a package stays what it was.
 */

interface Loaded {
  readonly url: string
  /** By path: the digest of each file, as it was just before it was loaded. */
  readonly files: Map<string, string>
  /** Node imports CommonJS once, whatever its URL; but requires it again, once it is out of the cache. */
  readonly required: boolean
}

const NUMBER = 'postern'
/** By path of the module's own file. */
const loaded = new Map<string, Loaded>()
const numbered = new Map<string, Loaded>()
/** The module format of each file that was imported from here, as node reports it. */
const formats = new Map<string, string | undefined | null>()
/** By path of each of their files: what CommonJS requires is asked for without a number. */
const byPath = new Map<string, Loaded>()
let hooked = false

/** Imports a file as it is now: the import of before, if nothing of it has changed since. Rejects with what it throws. */
export async function importFile(file: string): Promise<unknown> {
  const before = loaded.get(file)
  const current = before !== undefined && areAsLoaded(before.files) ? before : renew(file, before)
  try {
    if (current.required) return { default: createRequire(file)(file) as unknown }
    return await (import(/* @vite-ignore */ current.url) as Promise<unknown>)
  } catch (error) {
    // The cause may be mended in a file that was not imported yet.
    loaded.delete(file)
    throw error
  }
}

/** A file, and the digest of what it held just before it was loaded. */
export type LoadedFile = readonly [path: string, digest: string]

const loadedFiles = (file: string): readonly LoadedFile[] => [...(loaded.get(file)?.files ?? [])]

export const areAsLoaded = (files: Iterable<LoadedFile>): boolean =>
  [...files].every(([path, digest]) => digestOfFile(path) === digest)

/** A digest of a module's files as they were when it was imported. */
export const contentsAsLoaded = (file: string): string => digestOf(loadedFiles(file))

/** The same of the files as they are now. */
export const contentsNow = (file: string): string =>
  digestOf([...(loaded.get(file)?.files.keys() ?? [])].map((path) => [path, digestOfFile(path)]))

const digestOf = (files: readonly LoadedFile[]): string =>
  createHash('sha256').update(JSON.stringify(files)).digest('base64url')

function digestOfFile(path: string): string {
  try {
    return createHash('sha256').update(readFileSync(path)).digest('base64url')
  } catch {
    return 'unreadable'
  }
}

function renew(file: string, before: Loaded | undefined): Loaded {
  hook()
  const { cache } = createRequire(import.meta.url)
  for (const path of before?.files.keys() ?? []) Reflect.deleteProperty(cache, path)
  const number = String(numbered.size)
  const url = `${pathToFileURL(file).href}?${NUMBER}=${number}`
  const required = formats.get(file)?.startsWith('commonjs') === true
  const fresh: Loaded = { url, files: new Map(), required }
  add(fresh, file)
  numbered.set(number, fresh)
  loaded.set(file, fresh)
  return fresh
}

function add(to: Loaded, path: string): void {
  byPath.set(path, to)
  if (!to.files.has(path)) to.files.set(path, digestOfFile(path))
}

/** Makes relative imports of a module follow its number. */
function hook(): void {
  if (hooked) return
  hooked = true
  registerHooks({
    resolve: (specifier, context, next) => {
      const resolved = next(specifier, context)
      if (specifier.includes(`?${NUMBER}=`)) formats.set(fileURLToPath(resolved.url), resolved.format)
      if (!RELATIVE.test(specifier) || !resolved.url.startsWith('file:')) return resolved
      const number = numberIn(context.parentURL)
      const of = number === undefined ? requiredBy(context.parentURL) : numbered.get(number)
      if (of === undefined) return resolved
      add(of, fileURLToPath(resolved.url))
      if (number === undefined) return resolved
      const url = new URL(resolved.url)
      url.searchParams.set(NUMBER, number)
      return { ...resolved, url: url.href }
    },
  })
}

const requiredBy = (parent: string | undefined): Loaded | undefined =>
  parent?.startsWith('file:') === true ? byPath.get(fileURLToPath(parent)) : undefined

const RELATIVE = /^(?:\.{0,2}\/|file:)/

const numberIn = (url: string | undefined): string | undefined =>
  url?.includes(`${NUMBER}=`) === true ? (new URL(url).searchParams.get(NUMBER) ?? undefined) : undefined

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

export interface NamedModule {
  readonly file?: string | undefined
  readonly package?: string | undefined
}

export type ModuleSource = { readonly file: string } | { readonly package: string }

/** Undefined where it names both a file and a package, or neither. */
export function sourceOf({ file, package: name }: NamedModule): ModuleSource | undefined {
  if (file !== undefined && name !== undefined) return undefined
  return file !== undefined ? { file } : name === undefined ? undefined : { package: name }
}

/** Imports a module: its exports, by name. Rejects with what the code throws, or with why it is not found. */
export const importSource = (source: ModuleSource): Promise<unknown> =>
  'file' in source ? importFile(source.file) : importPackage(source.package)

/** A package of the project that Postern was started in; otherwise, for packages that only `import` finds, next to Postern. */
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

/** A digest of the files of an imported module, as imported or as they are now. Empty for what names no module. */
export function contentsOf(named: NamedModule, when: 'loaded' | 'now'): string {
  const source = sourceOf(named)
  const file = source && fileOf(source)
  if (file === undefined) return ''
  return when === 'loaded' ? contentsAsLoaded(file) : contentsNow(file)
}
