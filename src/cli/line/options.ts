/**
 * Reads what was typed behind the words of a command, by what its verb takes (operate/operation/verb.ts).
 */
import { parseArgs } from 'node:util'
import { didYouMean } from '../../base/config/problem-text.ts'
import {
  type Argument,
  type Given,
  KINDS,
  type Option,
  type Options,
  UsageError,
  type Verb,
} from '../../operate/operation/verb.ts'

interface OptionToken {
  readonly kind: 'option'
  readonly name: string
  /** As it was typed: `--name` or `-n`. */
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

/**
 * Reads the arguments behind the name of a verb.
 *
 * @throws UsageError on an unknown option, a value that is missing, too many or too few, or not of its kind
 */
export function parse<V extends Verb>(verb: V, args: readonly string[]): Given<V> {
  const { options } = verb
  const allowNegative = Object.values(options).some(({ negatable }) => negatable)
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    tokens: true,
    allowPositionals: true,
    allowNegative,
  })
  const seen = new Set<string>()
  for (const token of tokens)
    if (token.kind === 'option') {
      checkOption(token, options)
      checkOnce(token, options, seen)
    }
  checkCount(verb, positionals)
  return { values: values as Given<V>['values'], positionals }
}

const isNegation = ({ rawName }: OptionToken): boolean => rawName.startsWith('--no-')

function checkOption(token: OptionToken, options: Options): void {
  const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
  if (option === undefined || (isNegation(token) && option.negatable !== true))
    throw new UsageError(unknownText(token, options))
  if (option.type === 'boolean') checkSwitch(token)
  else checkText(token, option)
}

function unknownText({ rawName }: OptionToken, options: Options): string {
  const known = Object.entries(options).flatMap(([name, { negatable }]) =>
    negatable === true ? [`--${name}`, `--no-${name}`] : [`--${name}`],
  )
  const hint = didYouMean(rawName, [...known, '--help'])
  return `there is no option "${rawName}" here${hint === undefined ? '' : ` — ${hint}`}`
}

function checkSwitch({ rawName, value }: OptionToken): void {
  if (value !== undefined) throw new UsageError(`${rawName} takes no value`)
}

/** The word that help texts and messages have for the value of an option. */
export const valueName = ({ kind = 'text', value, words }: Option): string =>
  words?.join('|') ?? value ?? KINDS[kind].value

function checkText({ name, rawName, value, inlineValue }: OptionToken, option: Option): void {
  if (value === undefined) throw new UsageError(`${rawName}: expected ${valueName(option)}, got nothing`)
  // Mostly a forgotten value: the next option would be lost.
  if (inlineValue !== true && value.length > 1 && value.startsWith('-'))
    throw new UsageError(
      `${rawName}: expected ${valueName(option)}, got an option; a value that begins with "-" is written --${name}=-…`,
    )
  const trouble = troubleOf(value, option)
  if (trouble !== undefined) throw new UsageError(`${rawName}: ${trouble}`)
}

/** Why a value is none of its kind; undefined if it is. */
function troubleOf(value: string, { kind = 'text', words }: Option): string | undefined {
  const { fits, expected } = KINDS[kind]
  if (words !== undefined && !words.includes(value)) {
    const hint = didYouMean(value, words)
    return `expected ${words.length > 1 ? 'one of ' : ''}${words.join(', ')}, got "${value}"${hint === undefined ? '' : ` — ${hint}`}`
  }
  return fits === undefined || fits(value) ? undefined : `expected ${expected}, got "${value}"`
}

/** Refuses an option that is given twice: one of the values would be ignored silently. */
function checkOnce({ name, rawName }: OptionToken, options: Options, seen: Set<string>): void {
  if (seen.has(name) && options[name]?.multiple !== true && options[name]?.type === 'string')
    throw new UsageError(`${rawName} stands twice, and can have one value only`)
  seen.add(name)
}

/** `ID`, `[FILE]`, `FOLDER…`, as it is in usages. */
export function argumentText({ name, optional = false, repeated = false }: Argument): string {
  const text = repeated ? `${name}…` : name
  return optional ? `[${text}]` : text
}

/** Texts that were typed are not repeated: one may be a password in the wrong place. */
function checkCount({ arguments: expected }: Verb, given: readonly string[]): void {
  const least = expected.filter(({ optional }) => optional !== true).length
  const most = expected.at(-1)?.repeated === true ? Infinity : expected.length
  if (given.length >= least && given.length <= most) return
  const names = expected.map(argumentText).join(' ')
  const got = given.length === 0 ? 'nothing' : `${given.length} argument${given.length === 1 ? '' : 's'}`
  throw new UsageError(
    expected.length === 0 ? 'expected options only, got an argument' : `expected ${names}, got ${got}`,
  )
}
