/** The dependencies that are in the bundle: their licences for readers, and their list for scanners. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Package {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly author?: string | { readonly name: string }
  readonly folder: string
}

/** Each package that these modules are parts of. A package may lie below the node_modules of another one. */
export function packagesOf(modules: readonly string[]): readonly Package[] {
  const folders = modules.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  return [...new Set(folders)].map((folder) => ({
    ...(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Omit<Package, 'folder'>),
    folder,
  }))
}

/** The text of its licence: a file, else the section of its README, else what its package.json says. */
function textOf({ folder, license, author }: Package): string {
  const files = globSync('*', { cwd: folder }).toSorted()
  const texts = files.filter((name) => /^(?:licen[cs]e|copying|notice)\b/i.test(name))
  if (texts.length > 0)
    return texts.map((name) => readFileSync(join(folder, name), 'utf8').trim()).join('\n\n')
  const readme = files.find((name) => /^readme\b/i.test(name))
  const page = readme === undefined ? '' : readFileSync(join(folder, readme), 'utf8')
  const [, section] = /^#+ *licen[cs]e\n+((?:(?!#).*\n?)+)/im.exec(page) ?? []
  if (section?.includes('opyright') === true) return section.trim()
  const by = typeof author === 'object' ? author.name : author
  return `No text comes with this package. Its package.json says: ${license}${by === undefined ? '' : `, by ${by}`}.`
}

const RULE = `\n\n${'-'.repeat(80)}\n\n`

/** Name, version, licence and its text of each. */
export function licencesOf(packages: readonly Package[]): string {
  const head = 'Postern is under the Apache License 2.0 (LICENSE). Its programs contain these packages:'
  const told = packages.map((own) => `${own.name} ${own.version} (${own.license})\n\n${textOf(own)}`)
  return `${[head, ...told.toSorted()].join(RULE)}\n`
}

/** CycloneDX 1.5. */
export const listForScanners = (packages: readonly Package[]): string =>
  JSON.stringify({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    components: packages.map(({ name, version, license }) => ({
      type: 'library',
      name,
      version,
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      licenses: [{ expression: license }],
    })),
  })
