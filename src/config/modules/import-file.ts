import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

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
/** By number. */
const numbered = new Map<string, Loaded>()
/** Of each file that was imported from here, as node tells it. */
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

/** The files of an imported module. */
export const loadedFiles = (file: string): readonly LoadedFile[] => [...(loaded.get(file)?.files ?? [])]

/** Whether files still hold what they held. */
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
