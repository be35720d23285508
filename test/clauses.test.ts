import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { citations, citedIn, literalsOf, textFiles, titlesOf } from './support/cited.ts'
import { sourceFiles } from './support/source-files.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The pages of the protocol, one for each kind of reader, and those of extensions. */
const PROTOCOL = [
  ...['README', 'clients', 'services', 'operators'].map((page) => `src/protocol/${page}.md`),
  ...globSync('src/extensions/*/protocol.md', { cwd: ROOT }),
]
const EXCUSES = 'src/protocol/README.md'
const THREATS = 'test/threats.md'

/** Every page of documentation. */
const PAGES = ['README.md', 'src', 'config', 'deploy', 'test']
  .flatMap((place) => textFiles(ROOT, place))
  .filter((file) => file.endsWith('.md'))

const texts = new Map<string, string>()
const read = (file: string): string => {
  const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8')
  texts.set(file, text)
  return text
}
const headingsOf = (page: string): readonly string[] =>
  [...page.matchAll(/^#{2,4} (.+)$/gm)].map((match) => match[1] ?? '')
const idsOf = (page: string): readonly string[] =>
  headingsOf(page).flatMap((heading) => /^[CT]\d+(?:\.\d+)*[a-z]?(?= )/.exec(heading)?.[0] ?? [])

const protocol = PROTOCOL.map(read).join('\n')
const threats = read(THREATS)
const documented = new Set([...idsOf(protocol), ...idsOf(threats)])
const cited = citations(ROOT, ['src', 'test', 'config', 'deploy', 'README.md'])

const tests = textFiles(ROOT, 'test').filter((file) => /\.(?:test|contract)\.ts$/.test(file))
const citing = tests.filter((file) => citedIn(read(file)).length > 0)
const proven = new Set(citing.flatMap((file) => citedIn(titlesOf(join(ROOT, file)).join('\n'))))

/** Clauses of the last table of the index: not tested by themselves, and why. */
const excused = [
  ...(read(EXCUSES).split('\n## Rules without a test of their own\n')[1] ?? '').matchAll(
    /^\| (C[\d.]+[a-z]?) /gm,
  ),
].map((match) => match[1] ?? '')

describe('the protocol and the threats', () => {
  it('describe every clause and every threat that is cited anywhere', () => {
    const unknown = cited.filter(({ id }) => !documented.has(id))
    expect(unknown.map(({ file, id }) => `${file}: ${id}`)).toEqual([])
  })

  it('have each number once', () => {
    const ids = [...idsOf(protocol), ...idsOf(threats)]
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
  })

  it('have a test whose title names the clause, or a line that says why not', () => {
    const isGroup = (id: string): boolean => [...documented].some((other) => other.startsWith(`${id}.`))
    const clauses = idsOf(protocol).filter((id) => !isGroup(id))
    expect(clauses.filter((id) => !proven.has(id) && !excused.includes(id))).toEqual([])
  })

  it('excuse no clause that a test names', () => {
    expect(excused.filter((id) => proven.has(id) || !documented.has(id))).toEqual([])
  })

  it('name, for every threat, tests that cite it', () => {
    const sections = threats.split(/^#{2,3} /m).slice(1)
    const wrong = sections.flatMap((section) => {
      const [id = ''] = section.split(' ', 1)
      const files = [
        ...section.matchAll(
          /`((?:base|state|identity|gateway|operate|extensions|serve|cli|interop|support)\/[^`]*)`/g,
        ),
      ]
      const names = files.map((match) => `test/${match[1] ?? ''}`)
      const isGroup = sections.some((other) => other.startsWith(`${id}.`))
      const isNamed = (file: string, name: string): boolean =>
        name.endsWith('/') ? file.startsWith(name) : file === name
      const figures = [...section.matchAll(/`(long\/[^`]+)`/g)].map((match) => `test/${match[1] ?? ''}`)
      const missing = figures.filter((file) => !existsSync(join(ROOT, file)))
      const deaf = names.filter((name) => !cited.some((each) => each.id === id && isNamed(each.file, name)))
      return [
        ...[...deaf, ...missing].map((file) => `${id}: ${file}`),
        ...(names.length === 0 && !isGroup ? [id] : []),
      ]
    })
    expect(wrong).toEqual([])
  })

  it.each(PAGES)('%s links to headings and files that exist', (page) => {
    const folder = dirname(page)
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
    const broken = links.filter((link) => {
      const [path = '', anchor] = link.split('#')
      if (/^https?:/.test(link)) return false
      const target = path === '' ? page : join(folder, path)
      if (!existsSync(join(ROOT, target))) return true
      return anchor !== undefined && !headingsOf(read(target)).map(anchorOf).includes(anchor)
    })
    expect(broken).toEqual([])
  })
})

describe('the documentation', () => {
  const sources = ['src', 'test', '.config', 'config'].flatMap((place) => textFiles(ROOT, place))

  const written = PAGES.filter((page) => !['src/README.md', 'src/words.md'].includes(page))

  it.each(written)('%s names source files that exist', (page) => {
    const named = [...read(page).matchAll(/`([\w./-]+\.ts)`/g)].map((match) => match[1] ?? '')
    const missing = named.filter((name) => !sources.some((file) => `/${file}`.endsWith(`/${name}`)))
    expect(missing).toEqual([])
  })
})

/** Documentation for developers: the order of the checks by clause. */
const FOR_DEVELOPERS = ['src/gateway/decide/order.ts']

describe('what users read cites no number of a clause', () => {
  it('in no text of the source: faults, problems that check tells, help, pages, descriptions of options', () => {
    const files = sourceFiles(join(ROOT, 'src')).filter(
      (file) =>
        !FOR_DEVELOPERS.includes(relative(ROOT, file)) && citedIn(read(relative(ROOT, file))).length > 0,
    )
    const wrong = files.flatMap((file) =>
      literalsOf(file)
        .filter((text) => citedIn(text).length > 0)
        .map((text) => `${relative(ROOT, file)}: ${text}`),
    )
    expect(wrong).toEqual([])
  })

  it('in no configuration that is shipped', () => {
    expect(citations(ROOT, ['config']).map(({ file, id }) => `${file}: ${id}`)).toEqual([])
  })
})

/** As GitHub makes it of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
