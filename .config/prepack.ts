/**
 * Makes `dist`, which is published: the bundle, because Node strips no types below node_modules; the licences of what is in
 * it, and its list for scanners; and the declarations that `exports` offers, and those that these need.
 */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { licencesOf, listForScanners, packagesOf } from './bundled-packages.ts'
import { makeBundle } from './bundle.ts'

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

const packages = packagesOf((await makeBundle(Number.POSITIVE_INFINITY)).modules)
writeFileSync(at('dist/LICENSES.txt'), licencesOf(packages))
writeFileSync(at('dist/sbom.cdx.json'), listForScanners(packages))
execFileSync(
  process.execPath,
  [at('node_modules/typescript/bin/tsc'), '--project', at('.config/tsconfig.publish.json')],
  {
    stdio: 'inherit',
  },
)

/** The declarations that one file imports from its own package. */
const importedBy = (declaration: string): readonly string[] =>
  ts
    .preProcessFile(readFileSync(declaration, 'utf8'))
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => resolve(dirname(declaration), fileName.replace(/\.[jt]s$/, '.d.ts')))

function reachableFrom(declarations: readonly string[]): ReadonlySet<string> {
  const reached = new Set<string>()
  const waiting = [...declarations]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
    if (!reached.has(next)) {
      reached.add(next)
      waiting.push(...importedBy(next))
    }
  return reached
}

const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8')) as {
  exports: Readonly<Record<string, string | { readonly types: string }>>
}
const offered = Object.values(exports).flatMap((row) => (typeof row === 'string' ? [] : [at(row.types)]))
const needed = reachableFrom(offered)
for (const declaration of globSync('**/*.d.ts', { cwd: at('dist') }).map((name) => join(at('dist'), name)))
  if (!needed.has(declaration)) rmSync(declaration)
