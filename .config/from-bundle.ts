/** For a run of the tests on the bundle: what they import of `src` is the bundle's, where that offers it by its name. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { Plugin } from 'vitest/config'
import { ENTRIES } from './bundle.ts'

/**
 * The bundle's module is not transformed: Node loads the very file that ships. So a class is one class for the service and
 * for its test.
 */
export function fromBundle(root: string): Plugin {
  const [tests, src] = [join(root, 'test'), join(root, 'src')]
  return {
    name: 'from-bundle',
    enforce: 'pre',
    resolveId(name, importer) {
      if (importer?.startsWith(tests) !== true || !name.startsWith('.')) return undefined
      const path = resolve(importer, '..', name)
      if (!path.startsWith(src)) return undefined
      const place = relative(src, path).replace(/\.ts$/, '')
      return ENTRIES.includes(place) ? { id: join(root, 'dist', `${place}.js`), external: true } : undefined
    },
  }
}

const STARTERS = ['test/support/start-postern.ts', 'test/support/spawn-postern.ts']
const IMPORTS = /^(?:import|export)(?! type )[^']*?from '(\.[^']+)'/gm

/** The tests in these folders that start no service, neither themselves nor by what they import: the bundle is not in them. */
export function withoutService(root: string, folders: readonly string[]): readonly string[] {
  const starters = new Set(STARTERS.map((file) => join(root, file)))
  const starts = (file: string, seen: Set<string>): boolean => {
    if (starters.has(file)) return true
    if (seen.has(file) || file.startsWith(join(root, 'src')) || !existsSync(file)) return false
    seen.add(file)
    const imports = [...readFileSync(file, 'utf8').matchAll(IMPORTS)]
    return imports.some(([, name = '']) => starts(resolve(file, '..', name), seen))
  }
  const files = folders.flatMap((folder) => globSync(`${folder}/*.test.ts`, { cwd: root }))
  return files.filter((file) => !starts(join(root, file), new Set()))
}
