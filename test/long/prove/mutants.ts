/** Mutants of source files: small wrong changes of which a test should tell each. Nothing on disk is changed. */
import ts from 'typescript'

export interface Mutant {
  readonly id: number
  /** Path below the repository. */
  readonly file: string
  readonly line: number
  /** Whether it runs when the module is loaded, and never again. */
  readonly whileLoaded: boolean
  /** What it does, for people. */
  readonly change: string
  /** Where the changed node stands, in characters. */
  readonly start: number
  readonly end: number
  readonly kind: 'expression' | 'statement'
  /** The text that takes its place. */
  readonly replacement: string
}

type Found = Omit<Mutant, 'id' | 'file' | 'line' | 'whileLoaded'>

const { SyntaxKind } = ts

/** Operators, and what stands in their place. */
const SWAPS: ReadonlyMap<ts.SyntaxKind, readonly string[]> = new Map([
  [SyntaxKind.LessThanToken, ['<=', '>=']],
  [SyntaxKind.LessThanEqualsToken, ['<', '>']],
  [SyntaxKind.GreaterThanToken, ['>=', '<=']],
  [SyntaxKind.GreaterThanEqualsToken, ['>', '<']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [SyntaxKind.AmpersandAmpersandToken, ['||']],
  [SyntaxKind.BarBarToken, ['&&']],
  [SyntaxKind.PlusToken, ['-']],
  [SyntaxKind.MinusToken, ['+']],
  [SyntaxKind.AsteriskToken, ['/']],
  [SyntaxKind.SlashToken, ['*']],
])

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) ||
  ts.isTemplateExpression(node) ||
  (ts.isBinaryExpression(node) && (isText(node.left) || isText(node.right)))

const isCondition = (node: ts.Expression): boolean => {
  const { parent } = node
  return (
    (ts.isIfStatement(parent) && parent.expression === node) ||
    (ts.isConditionalExpression(parent) && parent.condition === node)
  )
}

function mutationsOf(node: ts.Node, textOf: (node: ts.Node) => string): readonly Found[] {
  const [start, end] = [node.getStart(), node.getEnd()]
  const expression = (replacement: string, change = `${textOf(node)} → ${replacement}`): Found => ({
    ...{ kind: 'expression', start, end, replacement, change },
  })
  const found: Found[] = []
  if (ts.isBinaryExpression(node)) {
    const joinsText = node.operatorToken.kind === SyntaxKind.PlusToken && isText(node)
    const [left, right] = [textOf(node.left), textOf(node.right)]
    const others = joinsText ? [] : (SWAPS.get(node.operatorToken.kind) ?? [])
    found.push(...others.map((other) => expression(`(${left}) ${other} (${right})`)))
  }
  if (ts.isExpression(node) && isCondition(node)) found.push(expression('true'), expression('false'))
  if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
    found.push(expression(textOf(node.operand)))
  if (node.kind === SyntaxKind.TrueKeyword && !ts.isLiteralTypeNode(node.parent))
    found.push(expression('false'))
  if (node.kind === SyntaxKind.FalseKeyword && !ts.isLiteralTypeNode(node.parent))
    found.push(expression('true'))
  const value = ts.isReturnStatement(node)
    ? node.expression
    : ts.isArrowFunction(node)
      ? node.body
      : undefined
  if (value !== undefined && !ts.isBlock(value) && textOf(value) !== 'undefined')
    found.push({
      ...{ kind: 'expression', start: value.getStart(), end: value.getEnd(), replacement: 'undefined' },
      change: `return ${textOf(value)} → nothing`,
    })
  if (ts.isExpressionStatement(node) && !textOf(node).startsWith('super'))
    found.push({ kind: 'statement', start, end, replacement: '', change: `${textOf(node)} → removed` })
  return found
}

/** All that can be made of one file. */
export function mutantsOf(file: string, text: string): readonly Omit<Mutant, 'id'>[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Omit<Mutant, 'id'>[] = []
  const statements = new Set<number>()
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return
    if (ts.isExpressionStatement(node)) statements.add(node.getStart())
    for (const each of mutationsOf(node, (inner) => inner.getText(source))) {
      // Written in brackets it would be taken for the arguments of the line before.
      if (each.kind === 'expression' && statements.has(each.start)) continue
      const line = source.getLineAndCharacterOfPosition(each.start).line + 1
      const whileLoaded = ts.findAncestor(node.parent, ts.isFunctionLike) === undefined
      found.push({ file, line, whileLoaded, ...each, change: each.change.replace(/\s+/g, ' ').slice(0, 160) })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** `count` of them, the same ones for the same seed. */
export function sampled<T>(from: readonly T[], count: number, seed: number): readonly T[] {
  let state = seed
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return from
    .map((each) => [random(), each] as const)
    .toSorted(([a], [b]) => a - b)
    .slice(0, count)
    .map(([, each]) => each)
}

/** The text of a file that holds all of its mutants, and is the one whose id `__mutant` gives; with 0 it is as before. */
export function instrument(text: string, mutants: readonly Mutant[]): string {
  const holders = (start: number, end: number): readonly Mutant[] =>
    mutants.filter((each) => each.start >= start && each.end <= end)
  const write = (start: number, end: number, among: readonly Mutant[]): string => {
    const outer = among.filter(
      (each) => !among.some((other) => other !== each && contains(other, each) && !sameSpan(other, each)),
    )
    const spans = [...new Map(outer.map((each) => [`${each.start}-${each.end}`, each])).values()]
    let [written, at] = ['', start]
    for (const span of spans.toSorted((a, b) => a.start - b.start)) {
      const own = among.filter((each) => sameSpan(each, span))
      const inner = holders(span.start, span.end).filter((each) => !sameSpan(each, span))
      const original = write(span.start, span.end, inner)
      written += text.slice(at, span.start) + choice(own, original)
      at = span.end
    }
    return written + text.slice(at, end)
  }
  return write(0, text.length, mutants)
}

const contains = (outer: Mutant, inner: Mutant): boolean =>
  outer.start <= inner.start && outer.end >= inner.end
const sameSpan = (a: Mutant, b: Mutant): boolean => a.start === b.start && a.end === b.end

function choice(mutants: readonly Mutant[], original: string): string {
  if (mutants.some(({ kind }) => kind === 'statement'))
    return mutants.reduce((rest, { id }) => `{ if (!__isMutant(${id})) { ${rest} } }`, original)
  return mutants.reduce(
    (rest, { id, replacement }) => `(__isMutant(${id}) ? (${replacement}) : (${rest}))`,
    original,
  )
}
