/** For a run of the tests on the bundle: what they import of `src` is the bundle's, where that offers it by its name. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Plugin } from 'vitest/config'
import { ENTRIES, OFFERED, offeredName, OFFERS } from './bundle.ts'

const VIRTUAL = '\0offered:'

/**
 * The bundle's modules are not transformed: Node loads the very files that ship. So a class is one class for the service and
 * for its test.
 */
export function fromBundle(root: string): Plugin {
  const [tests, src, dist] = [join(root, 'test'), join(root, 'src'), join(root, 'dist')]
  const offers = join(dist, `${OFFERS}.js`)
  return {
    name: 'from-bundle',
    enforce: 'pre',
    resolveId(name, importer) {
      if (name === offers) return { id: name, external: true }
      if (importer?.startsWith(tests) !== true || !name.startsWith('.')) return undefined
      const path = resolve(importer, '..', name)
      if (!path.startsWith(src)) return undefined
      const place = relative(src, path).replace(/\.ts$/, '')
      if (ENTRIES.includes(place)) return { id: join(dist, `${place}.js`), external: true }
      return OFFERED.includes(place) ? VIRTUAL + place : undefined
    },
    async load(id) {
      if (!id.startsWith(VIRTUAL)) return undefined
      const name = offeredName(id.slice(VIRTUAL.length))
      const all = (await import(pathToFileURL(offers).href)) as Readonly<Record<string, object>>
      const names = Object.keys(all[name] ?? {}).join(', ')
      return `import { ${name} } from ${JSON.stringify(offers)}\nexport const { ${names} } = ${name}`
    },
  }
}

const STARTERS = ['test/support/start-postern.ts', 'test/support/spawn-postern.ts']
const IMPORTS = /^(?:import|export)(?! type )([^']*?)from '(\.[^']+)'/gm
const ONLY_TYPES = /^\s*\{\s*(?:type [^,}]+,?\s*)+\}\s*$/

/**
 * The tests of these patterns that are not run on the bundle: they start no service, neither themselves nor by what they
 * import, and import modules that the bundle does not offer. Each with one of those.
 */
export function withoutBundle(root: string, patterns: readonly string[]): ReadonlyMap<string, string> {
  const starters = new Set(STARTERS.map((file) => join(root, file)))
  const src = join(root, 'src')
  const reachedFrom = (file: string, seen: Set<string>): Set<string> => {
    if (seen.has(file) || !existsSync(file)) return seen
    seen.add(file)
    if (file.startsWith(src) || starters.has(file)) return seen
    for (const [, names = '', name = ''] of readFileSync(file, 'utf8').matchAll(IMPORTS))
      if (!ONLY_TYPES.test(names)) reachedFrom(resolve(file, '..', name), seen)
    return seen
  }
  const isOffered = (place: string): boolean => ENTRIES.includes(place) || OFFERED.includes(place)
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: root }))
  if (files.length === 0) throw new Error(`there is no test of ${patterns.join(', ')}`)
  return new Map(
    files.flatMap((file) => {
      const reached = [...reachedFrom(join(root, file), new Set())]
      if (reached.some((each) => starters.has(each))) return []
      const places = reached.filter((each) => each.startsWith(src)).map((each) => relative(src, each))
      const missing = places.find((place) => !isOffered(place.replace(/\.ts$/, '')))
      return missing === undefined ? [] : [[file, missing] as const]
    }),
  )
}
