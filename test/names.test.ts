import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { sourceFiles } from './support/source-files.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SOURCE = join(ROOT, 'src')

const read = (file: string): string => readFileSync(file, 'utf8')
const rowsOf = (page: string): readonly (readonly string[])[] =>
  [...page.matchAll(/^\| (.*) \|$/gm)].map(([, row]) => (row ?? '').split('|').map((cell) => cell.trim()))

/** The page tells before it how sentences and messages are written. */
const namesPart = (page: string): string => page.slice(page.indexOf('\n## Names\n'))

/** The words of the first column of src/words.md that stand in back quotes. */
const RETIRED: ReadonlySet<string> = new Set(
  rowsOf(namesPart(read(join(SOURCE, 'words.md')))).flatMap(([cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => (name ?? '').toLowerCase()),
  ),
)

/** `AttemptGate` → the whole, and `attempt`, `gate`; `MOST_TRIED` → `most`, `tried`. */
function wordsOf(name: string): readonly string[] {
  const parts = name.includes('_') ? name.split('_') : name.split(/(?<=[a-z\d])(?=[A-Z])/)
  return [name, ...parts].map((part) => part.toLowerCase())
}

function exportedNames(file: string): readonly string[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true, ts.ScriptKind.TS)
  return source.statements.flatMap((statement) => {
    const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
    if (!modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return []
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.getText())
    return 'name' in statement && statement.name ? [(statement.name as ts.Identifier).getText()] : []
  })
}

/** Each extension exports one literal by this name, and the list of them is needed by two programs. */
const ONE_THING: ReadonlySet<string> = new Set(['extension', 'EXTENSIONS'])

describe('names', () => {
  it('no exported name has a word that src/words.md retires', () => {
    const wrong = sourceFiles(SOURCE).flatMap((file) =>
      exportedNames(file)
        .filter((name) => wordsOf(name).some((word) => RETIRED.has(word)))
        .map((name) => `${relative(ROOT, file)}: ${name}`),
    )
    expect(RETIRED.size).toBeGreaterThan(20)
    expect(wrong).toEqual([])
  })

  it('an exported name stands for one thing', () => {
    const files = new Map<string, string[]>()
    for (const file of sourceFiles(SOURCE))
      for (const name of new Set(exportedNames(file)))
        files.set(name, [...(files.get(name) ?? []), relative(ROOT, file)])
    const several = [...files].filter(([name, where]) => where.length > 1 && !ONE_THING.has(name))
    expect(several).toEqual([])
  })

  it('the glossary of src/README.md has at most 60 terms, each once and in one line', () => {
    const page = read(join(SOURCE, 'README.md'))
    const start = page.indexOf('## Glossary')
    const glossary = page.slice(start, page.indexOf('\n## ', start + 1))
    const terms = rowsOf(glossary)
      .slice(2)
      .map(([term]) => term)
    expect(start).toBeGreaterThan(0)
    expect(terms.length).toBeGreaterThan(30)
    expect(terms.length).toBeLessThanOrEqual(60)
    expect(new Set(terms).size).toBe(terms.length)
  })
})
