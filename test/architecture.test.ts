import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { withoutBundle } from '../.config/from-bundle.ts'
import { CHECKS } from '../src/gateway/decide/order.ts'
import { sourceFiles } from './support/source-files.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const EXTENSIONS = readdirSync(join(ROOT, 'src/extensions'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
/** The list of extensions. */
const LIST = 'serve/start/extensions.ts'

/** The folders within extensions that exist, the lowest first: an extension may have been deleted. */
const WITHIN_EXTENSIONS = [['audit/format'], ['audit/queue', 'audit/read'], ['audit/write']]
  .map((folders) => folders.filter((folder) => existsSync(join(ROOT, 'src/extensions', folder))))
  .filter((folders) => folders.length > 0)

/**
 * The folders of `src`, the lowest first, and the layers of the folders in each, the lowest first (src/README.md); `.` are a
 * folder's own files. A file imports from its own folder, from a lower layer, and from what stands before.
 */
const HOUSE: Readonly<Record<string, readonly (readonly string[])[]>> = {
  base: [
    ['kernel'],
    ['files', 'http/body', 'http/names'],
    ['config', 'http/head'],
    ['config/modules', 'config/scopes', 'http/xml'],
    ['contracts/people', 'http'],
    ['contracts/calls'],
    ['contracts/records'],
    ['contracts/processes'],
  ],
  state: [['stores/feed', 'stores/link'], ['stores/sqlite'], ['stores']],
  identity: [
    ['directory/hashing', 'keys/verify'],
    ['directory/records', 'keys/remote', 'keys/signing'],
    ['directory/editors', 'keys/issuers'],
    ['dependencies'],
    ['guessing', 'pages', 'stored'],
    ['steps'],
    ['tokens'],
    ['authorize', 'grants'],
    ['account'],
    ['endpoints'],
    ['.'],
  ],
  gateway: [
    ['backends/templates', 'limits', 'maintenance', 'server', 'upstream'],
    ['backends/forward/response', 'backends/forward/schema', 'backends/memory'],
    ['backends/forward/auth', 'backends/forward/target', 'conversion'],
    ['backends/forward'],
    ['backends'],
    ['actions'],
    ['decide'],
    ['describe', 'explain', 'openapi'],
  ],
  operate: [
    ['watch', 'watch/metrics'],
    ['settings', 'watch/log', 'watch/status'],
    ['operation'],
    ['explain', 'revoke', 'service', 'trail'],
    ['records'],
    ['hooks'],
    ['.'],
  ],
  extensions: [...WITHIN_EXTENSIONS, EXTENSIONS],
  serve: [['parts', 'processes'], ['start']],
  cli: [['line'], ['engine', 'init'], ['commands'], ['.']],
}
/** Of each folder of `src`. `main.ts` stands above all. */
const LAYERS: ReadonlyMap<string, number> = new Map(
  Object.entries(HOUSE)
    .flatMap(([top, layers]) =>
      layers.map((folders) => folders.map((folder) => (folder === '.' ? top : `${top}/${folder}`))),
    )
    .flatMap((folders, layer) => folders.map((folder) => [folder, layer] as const)),
)
/** Files of a folder. More than that are more than one subject. */
const MOST_FILES = 20

interface Import {
  readonly file: string
  readonly specifier: string
}

const files = sourceFiles(join(ROOT, 'src'))
const read = (file: string): string => readFileSync(file, 'utf8')
const parse = (file: string): ts.SourceFile =>
  ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true, ts.ScriptKind.TS)
const name = (file: string): string => relative(join(ROOT, 'src'), file)
const folderOf = (file: string): string => (name(file).includes('/') ? dirname(name(file)) : '')
const layer = (file: string): number => LAYERS.get(folderOf(file)) ?? LAYERS.size

function specifiers(file: string): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier)
      found.push((node.moduleSpecifier as ts.StringLiteral).text)
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [argument] = node.arguments
      if (argument && ts.isStringLiteral(argument)) found.push(argument.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(parse(file))
  return found
}

/** fastify is the server of two things: the admin listener, and the public listener, whose replies reply-from uses. lru-cache is every bounded cache. */
const WIDE = new Map([
  ['fastify', 3],
  ['lru-cache', 11],
])

const imports: readonly Import[] = files.flatMap((file) =>
  specifiers(file).map((specifier) => ({ file, specifier })),
)
const resolve = ({ file, specifier }: Import): string => normalize(join(dirname(file), specifier))
const own = imports.filter(({ specifier }) => specifier.startsWith('.'))

describe('architecture', () => {
  it('every file imports only from its own folder or from a lower layer', () => {
    const wrong = own.filter(
      (entry) =>
        folderOf(entry.file) !== folderOf(resolve(entry)) && layer(resolve(entry)) >= layer(entry.file),
    )
    expect(wrong.map((entry) => `${name(entry.file)} → ${name(resolve(entry))}`)).toEqual([])
  })

  it('every folder with code has one layer, and every layer has its folders', () => {
    const folders = new Set(files.map(folderOf).filter((folder) => folder !== ''))
    expect([...LAYERS.keys()].toSorted()).toEqual([...folders].toSorted())
  })

  it('the files of a folder are all below its subfolders, or all above them', () => {
    const between = (from: string, to: string): boolean =>
      own.some((entry) => folderOf(entry.file) === from && folderOf(resolve(entry)) === to)
    const wrong = [...LAYERS.keys()].filter((folder) => {
      const within = [...LAYERS.keys()].filter((other) => other.startsWith(`${folder}/`))
      return within.some((other) => between(folder, other)) && within.some((other) => between(other, folder))
    })
    expect(wrong).toEqual([])
  })

  it(`no folder has more than ${MOST_FILES} files`, () => {
    const counts = Map.groupBy(files, folderOf)
    expect([...counts].filter(([, inside]) => inside.length > MOST_FILES).map(([folder]) => folder)).toEqual(
      [],
    )
  })

  it('only the list imports from extensions, and one file of each; none imports another; only start and cli import the list', () => {
    const isOfExtension = (file: string): boolean => file.startsWith('extensions/')
    const extensionOf = (file: string): string | undefined => /^extensions\/([^/]+)\//.exec(file)?.[1]
    const wrong = own.filter((entry) => {
      const [from, to] = [name(entry.file), name(resolve(entry))]
      if (to === LIST) return !/^(?:serve\/start|cli)\//.test(from)
      if (!isOfExtension(to) || extensionOf(to) === extensionOf(from)) return false
      return !(from === LIST && to.endsWith('/extension.ts'))
    })
    expect(wrong.map((entry) => `${name(entry.file)} → ${name(resolve(entry))}`)).toEqual([])
    const listed = own.filter(
      ({ file, specifier }) => name(file) === LIST && /\/extension\.ts$/.test(specifier),
    )
    expect(listed.map(resolve).map(name).filter(isOfExtension).toSorted()).toEqual(
      EXTENSIONS.map((extension) => `extensions/${extension}/extension.ts`),
    )
  })

  it.each(EXTENSIONS)(
    'the extension %s loads its work by import(), and has a README of 40 lines and tests',
    (extension) => {
      const at = (path: string): string => join(ROOT, 'src/extensions', extension, path)
      const loaded = [...read(at('extension.ts')).matchAll(/^(?:import|export) (?!type )[^'=]*'(\.[^']+)'/gm)]
      const light = [
        ...['./schema.ts', './format/schema.ts', './commands.ts'],
        ...['../../operate/operation/verb.ts', '../../base/kernel/faults.ts'],
      ]
      expect(loaded.map(([, path = '']) => path).filter((path) => !light.includes(path))).toEqual([])
      expect(read(at('README.md')).trimEnd().split('\n').length).toBeLessThanOrEqual(40)
      expect(existsSync(at('protocol.md'))).toBe(true)
      expect(existsSync(join(ROOT, 'test/extensions', extension))).toBe(true)
    },
  )

  it('there is no import cycle, type imports included', () => {
    const graph = new Map<string, string[]>(files.map((file) => [file, []]))
    for (const entry of own) graph.get(entry.file)?.push(resolve(entry))
    expect(findCycle(graph)?.map(name)).toBeUndefined()
  })

  it('each third-party library is imported in one or two files', () => {
    const users = new Map<string, Set<string>>()
    for (const { file, specifier } of imports) {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue
      const library = specifier
        .split('/')
        .slice(0, specifier.startsWith('@') ? 2 : 1)
        .join('/')
      users.set(library, (users.get(library) ?? new Set()).add(name(file)))
    }
    const wide = [...users].filter(([library, by]) => by.size > (WIDE.get(library) ?? 2))
    expect(wide.map(([library, by]) => `${library}: ${[...by].join(', ')}`)).toEqual([])
  })

  it('no folder or file has a name that says nothing', () => {
    const idle = /(^|\/)(utils?|helpers?|common|shared|core|lib|misc|index)(\.ts)?(\/|$)/
    expect(files.map(name).filter((file) => idle.test(file))).toEqual([])
  })

  it('no file uses what the oldest Node that will do (package.json) lacks, though the types have it', () => {
    const newer =
      /\.getOrInsert|\bTemporal\.|\.to(?:Hex|Base64)\(|Uint8Array\.from(?:Hex|Base64)|Iterator\.(?:concat|zip)|Math\.sumPrecise/
    expect(files.filter((file) => newer.test(read(file))).map(name)).toEqual([])
  })

  it('no source file is over 600 lines, and no function over 80 without a comment `long: why`', () => {
    const longFiles = files
      .map((file) => ({ file: name(file), lines: read(file).split('\n').length }))
      .filter(({ lines }) => lines > 600)
    const longFunctions = files.flatMap((file) => functionsOver(file, 80))
    expect(longFiles).toEqual([])
    expect(longFunctions).toEqual([])
  })

  it('every wire and attack test meets the bundle: what it imports of src is offered there, or it starts a service', () => {
    expect([...withoutBundle(ROOT, ['test/**/*.{wire,attack}.test.ts'])]).toEqual([])
  })

  it('C4: pipeline.ts makes the checks in the order of the table', () => {
    const page = read(join(ROOT, 'src/gateway/decide/pipeline.ts'))
    const body = page.slice(page.indexOf('function enter('))
    const places = CHECKS.map(({ step }) => body.search(new RegExp(`\\b${step}\\(`)))
    expect(places.every((place) => place >= 0)).toBe(true)
    expect(places).toEqual([...places].sort((a, b) => a - b))
  })
})

function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): string[] | undefined => {
    if (trail.includes(file)) return [...trail.slice(trail.indexOf(file)), file]
    if (done.has(file)) return undefined
    done.add(file)
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...trail, file])
      if (cycle) return cycle
    }
    return undefined
  }
  for (const file of graph.keys()) {
    const cycle = visit(file, [])
    if (cycle) return cycle
  }
  return undefined
}

function functionsOver(file: string, limit: number): string[] {
  const source = parse(file)
  const long: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const start = source.getLineAndCharacterOfPosition(node.getStart()).line
      const lines = source.getLineAndCharacterOfPosition(node.getEnd()).line - start + 1
      const comments = source.text.slice(node.getFullStart(), node.getStart())
      if (lines > limit && !/\blong: \w/.test(comments))
        long.push(`${name(file)}:${start + 1} (${lines} lines)`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return long
}
