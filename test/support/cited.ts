import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'

/** A clause of the protocol (`C4.12`) or a row of the threats (`T2.4`), as comments and titles cite it. */
const CITED = /(?<![\w%{])(?:C[1-9]\d?|T[1-9])(?:\.\d+)*[a-z]?(?![\w}])/g
const TEXT_FILES = /\.(?:ts|md|yaml|yml|json|css|service|toml)$|(?:^|\/)Dockerfile$/

export interface Citation {
  readonly id: string
  readonly file: string
}

/** Text files below a folder of the repository, or a file itself; paths from `root`. */
export function textFiles(root: string, below: string): readonly string[] {
  if (TEXT_FILES.test(below)) return [below]
  return readdirSync(join(root, below), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && TEXT_FILES.test(join(entry.parentPath, entry.name)))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

export const citedIn = (text: string): readonly string[] => text.match(CITED) ?? []

/** Every citation in these files, each id once a file. */
export function citations(root: string, places: readonly string[]): readonly Citation[] {
  return places
    .flatMap((place) => textFiles(root, place))
    .flatMap((file) => {
      const ids = new Set(citedIn(readFileSync(join(root, file), 'utf8')))
      return [...ids].map((id) => ({ id, file }))
    })
}

const parse = (file: string): ts.SourceFile =>
  ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)

/** Every text that a source file holds: strings, and the texts between the values of a template. */
export function literalsOf(file: string): readonly string[] {
  const texts: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      texts.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(parse(file))
  return texts
}

/** What the titles of a test file cite, those of `describe` included. */
export function titlesOf(file: string): readonly string[] {
  const titles: string[] = []
  const visit = (node: ts.Node): void => {
    const title = ts.isCallExpression(node) && isTestCall(node) ? node.arguments[0] : undefined
    if (title !== undefined) titles.push(title.getText(source))
    ts.forEachChild(node, visit)
  }
  const source = parse(file)
  visit(source)
  return titles
}

/** `it(…)`, `describe.each(…)(…)`, `it.runIf(…).each(…)(…)`. */
function isTestCall({ expression }: ts.CallExpression): boolean {
  let callee: ts.Expression = expression
  while (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) callee = callee.expression
  return ts.isIdentifier(callee) && (callee.text === 'it' || callee.text === 'describe')
}
