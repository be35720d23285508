import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../spawn-postern.ts'

/** Pages of config/recipes, read as their test runs them. README.md there says what a page looks like. */

const FOLDER = join(ROOT, 'config/recipes')

export interface Command {
  readonly command: string
  /** What the page shows of its output; `…` stands for anything. */
  readonly output: string | undefined
}

export interface RecipePage {
  readonly name: string
  /** The whole of my.yaml. */
  readonly configuration: string
  /** Other files that the reader saves, by name. */
  readonly files: ReadonlyMap<string, string>
  /** What is set in the line that starts Postern. */
  readonly environment: Readonly<Record<string, string>>
  /** Typed before Postern is started, and after. */
  readonly before: readonly Command[]
  readonly after: readonly Command[]
  /** Requests that the service gets, in order: some of them. */
  readonly received: readonly string[]
}

interface Block {
  readonly language: string
  /** Of the file that it is. */
  readonly file: string
  readonly text: string
  /** Whether nothing but a blank line stands between it and the block before. */
  readonly follows: boolean
}

const OUTPUTS: ReadonlySet<string> = new Set(['json', 'text', 'xml'])
const START = /^((?:[A-Z_]+=\S+ )*)POSTERN_CONFIG=my\.yaml npm start$/

/** Names of all pages. */
export const recipeNames = (): readonly string[] =>
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => basename(file, '.md'))

function blocksOf(page: string): readonly Block[] {
  let end = 0
  return [...page.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)\n```$/gms)].map((match) => {
    const { 0: whole, 1: language = '', 2: file = '', 3: text = '', index } = match
    const follows = end > 0 && page.slice(end, index).trim() === ''
    end = index + whole.length
    return { language, file, text, follows }
  })
}

export const readPage = (name: string): RecipePage =>
  parsePage(name, readFileSync(join(FOLDER, `${name}.md`), 'utf8'))

/** Throws where there is a block that nobody would run. */
export function parsePage(name: string, page: string): RecipePage {
  const blocks = blocksOf(page)
  const inShell = blocks.filter(({ language }) => language === 'sh')
  const start = inShell.findIndex(({ text }) => START.test(text))
  const [configuration, ...more] = blocks.filter(({ language, file }) => language === 'yaml' && file === '')
  const lost = blocks.filter((block, at) => !isRun(block, blocks[at - 1]))
  for (const { text } of [...lost, ...more]) throw new Error(`${name}.md: nothing runs the block: ${text}`)
  if (configuration === undefined || start < 0)
    throw new Error(`${name}.md lacks my.yaml, or how to start it`)
  const commands = (from: readonly Block[]): readonly Command[] =>
    from
      .filter(({ text }) => text !== serviceLine(name))
      .map((block) => ({ command: block.text, output: outputOf(block, blocks) }))
  return {
    name,
    configuration: configuration.text,
    files: new Map(blocks.filter(({ file }) => file !== '').map(({ file, text }) => [file, text])),
    environment: assignments(START.exec(inShell[start]?.text ?? '')?.[1] ?? ''),
    before: commands(inShell.slice(0, start)),
    after: commands(inShell.slice(start + 1)),
    received: blocks.filter(({ language }) => language === 'http').map(({ text }) => text),
  }
}

/** What a reader types to start the page's service. */
export const serviceLine = (name: string): string => `npm run recipe ${name}`

const isRun = ({ language, file, follows }: Block, before: Block | undefined): boolean =>
  ['sh', 'http', 'yaml'].includes(language) ||
  file !== '' ||
  (OUTPUTS.has(language) && follows && before?.language === 'sh')

function outputOf(block: Block, blocks: readonly Block[]): string | undefined {
  const next = blocks[blocks.indexOf(block) + 1]
  return next?.follows && OUTPUTS.has(next.language) && next.file === '' ? next.text : undefined
}

const assignments = (words: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    words
      .trim()
      .split(' ')
      .filter((word) => word !== '')
      .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  )
