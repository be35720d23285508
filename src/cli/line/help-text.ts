/** The texts of `--help`, made from the tables of the commands. */
import type { Option, Options, Verb } from '../../operate/operation/verb.ts'
import { argumentText, valueName } from './options.ts'
import type { ChosenVerb, CommandTable } from './command.ts'

const WIDTH = 100
/** The widest name that has its text on the same line. */
const COLUMN = 28

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** A name and its text next to it, as lines. */
function entry(name: string, text: string, column: number): string {
  const [first = '', ...more] = wrapped(text, WIDTH - column - 2)
  const indent = ' '.repeat(column)
  const head = name.length < column ? `${name.padEnd(column)}${first}` : `${name}\n  ${indent}${first}`
  return [`  ${head}`, ...more.map((line) => `  ${indent}${line}`)].map((line) => `${line}\n`).join('')
}

/** The width of the first column that fits these names. */
export const columnOf = (names: readonly string[]): number =>
  names.reduce((most, { length }) => (length > most && length <= COLUMN ? length : most), 0) + 2

/** Names and their texts, in two columns. */
export const entriesText = (
  entries: readonly (readonly [name: string, text: string])[],
  column = columnOf(entries.map(([name]) => name)),
): string => entries.map(([name, text]) => entry(name, text, column)).join('')

/** The text behind the name of an option; empty for a switch. */
const valueText = (option: Option): string =>
  option.type === 'boolean' ? '' : ` ${valueName(option)}${option.multiple === true ? ' …' : ''}`

const optionText = (name: string, option: Option): string =>
  `${option.short === undefined ? '' : `-${option.short}, `}--${option.negatable === true ? '[no-]' : ''}${name}${valueText(option)}`

const optionsText = (options: Options): string =>
  entriesText(Object.entries(options).map(([name, option]) => [optionText(name, option), option.help]))

/** `postern client add ID [OPTIONS]`. */
export function usageLine(
  command: string,
  name: string,
  { usage, arguments: expected, options }: Verb,
): string {
  const words =
    usage ??
    [...expected.map(argumentText), ...(Object.keys(options).length > 0 ? ['[OPTIONS]'] : [])].join(' ')
  return ['postern', command, name, words].filter((word) => word !== '').join(' ')
}

const paragraphs = (texts: readonly string[]): string =>
  texts.map((text) => `\n${wrapped(text, WIDTH).join('\n')}\n`).join('')

const section = (title: string, body: string): string => (body === '' ? '' : `\n${title}:\n${body}`)

const examplesText = ({ examples }: Verb): string =>
  examples.map(({ line, does }) => `  ${line}\n      ${does}\n`).join('')

/** The help on one verb. */
export const verbHelp = (command: string, { name, verb }: Omit<ChosenVerb, 'args'>): string =>
  [
    `Usage: ${usageLine(command, name, verb)}\n`,
    paragraphs([`${verb.summary}.`, ...(verb.notes ?? [])]),
    section('Options', optionsText(verb.options)),
    section('Examples', examplesText(verb)),
  ].join('')

/** The help on a command of several verbs: what each does, and one example of each. */
export function commandHelp(command: string, { verbs, notes = [] }: CommandTable): string {
  const rows = Object.entries(verbs).filter(([name]) => name !== '')
  return [
    `Usage: postern ${command} VERB [OPTIONS]\n`,
    section(
      'Verbs',
      entriesText(
        rows.map(([name, verb]) => [[name, ...verb.arguments.map(argumentText)].join(' '), verb.summary]),
      ),
    ),
    paragraphs(notes),
    section('Examples', rows.map(([, { examples }]) => `  ${examples[0]?.line ?? ''}\n`).join('')),
    `\nThe options of a verb: postern ${command} VERB --help\n`,
  ].join('')
}
