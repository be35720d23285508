import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from '../support/spawn-postern.ts'

/** What a file imports when it is loaded: no types, and nothing by `import()`. */
const importsOf = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type\b)[^;'"]*?from '([^']+)'/gm)].map(
    ([, specifier = '']) => specifier,
  )

/** Our own modules and the libraries that are loaded with a file. */
function loadedBy(file: string): {
  readonly own: ReadonlySet<string>
  readonly libraries: readonly string[]
} {
  const own = new Set<string>()
  const libraries = new Set<string>()
  const visit = (path: string): void => {
    if (own.has(path)) return
    own.add(path)
    for (const specifier of importsOf(path))
      if (specifier.startsWith('.')) visit(join(dirname(path), specifier))
      else if (!specifier.startsWith('node:')) libraries.add(specifier)
  }
  visit(join(ROOT, file))
  return { own, libraries: [...libraries] }
}

it.each([
  ...['service/maintenance', 'service/status', 'service/service', 'service/configuration'],
  ...['revoke/revoke', 'revoke/revocables', 'revoke/lockouts'],
])('C11.6 a command that only calls the admin API loads few modules: %s', (name) => {
  const { own, libraries } = loadedBy(`src/operate/${name}.ts`)
  expect(libraries).toEqual([])
  expect(own.size).toBeLessThan(30)
})

it('C11.6 an operation on the directory loads neither the store nor what reads a configuration', () => {
  const { own, libraries } = loadedBy('src/operate/records/records.ts')
  expect(libraries).toEqual(['lru-cache'])
  expect(own.size).toBeLessThan(120)
})
