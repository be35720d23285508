/** The completion of zsh, which shows what each command and option does. */
import type { Argument, Option, Verb } from '../../operator/verb.ts'
import { valueName } from '../options.ts'
import { type CompletedCommand, type Proposal, proposalOf } from './values.ts'

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Brackets and colons end a part of what `_arguments` reads. */
const explanation = (text: string): string => text.replaceAll(/[\\:[\]]/g, String.raw`\$&`)
const message = (text: string): string => text.replaceAll(':', String.raw`\:`)

/** The first sentence, which fits on a line of a menu. */
const firstSentence = (text: string): string => text.split(/[.;:](?: |$)/, 1)[0] ?? ''

const ACTIONS = {
  ...{ nothing: '', files: '_files', folders: '_files -/', 'at-files': '_postern_at_files' },
} as const

const actionOf = (proposal: Proposal): string =>
  typeof proposal === 'string' ? ACTIONS[proposal] : `(${proposal.join(' ')})`

function optionSpecs([name, option]: readonly [string, Option]): readonly string[] {
  const { type, multiple, short, negatable, help } = option
  const value = type === 'boolean' ? '' : `:${message(valueName(option))}:${actionOf(proposalOf(option))}`
  const rest = `[${explanation(firstSentence(help))}]${value}`
  const many = multiple === true ? '*' : ''
  return [
    `${many}--${name}${type === 'boolean' ? '' : '='}${rest}`,
    ...(negatable === true ? [`--no-${name}${rest}`] : []),
    ...(short === undefined ? [] : [`${many}-${short}${rest}`]),
  ]
}

function argumentSpec(argument: Argument): string {
  const colons = argument.repeated === true ? '*:' : argument.optional === true ? '::' : ':'
  return `${colons}${message(argument.name)}:${actionOf(proposalOf(argument))}`
}

function argumentsCall({ options, arguments: expected }: Verb): string {
  const specs = [
    ...Object.entries(options).flatMap(optionSpecs),
    '--help[Show the options, with examples]',
    ...expected.map(argumentSpec),
  ]
  return ['_arguments :', ...specs.map((spec) => `    ${quote(spec)}`)].join(' \\\n')
}

const described = (entries: readonly (readonly [name: string, summary: string])[]): string =>
  entries.map(([name, summary]) => `    ${quote(`${name}:${firstSentence(summary)}`)}\n`).join('')

/** The function of one command. Its first word is the name of the command. */
function commandFunction({ name, table: { verbs } }: CompletedCommand): string {
  const { '': unnamed, ...named } = verbs
  const without = unnamed === undefined ? '' : `  ${argumentsCall(unnamed)}\n`
  const entries = Object.entries(named)
  if (entries.length === 0) return `_postern_${name}() {\n${without}}\n`
  const cases = entries.map(
    ([word, verb]) => `  ${word}) shift words; ((CURRENT--)); ${argumentsCall(verb)}; return ;;\n`,
  )
  return [
    `_postern_${name}() {\n  local -a verbs=(\n`,
    described(entries.map(([word, { summary }]) => [word, summary])),
    `  )\n  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then _describe verb verbs; return; fi\n`,
    `  case $words[2] in\n${cases.join('')}  esac\n${without}}\n`,
  ].join('')
}

const HEAD = `#compdef postern
# The completion of postern for zsh. Install it as the file _postern in a folder of fpath, or load it behind compinit:
# source <(postern completion zsh)

_postern_at_files() {
  if compset -P @; then _files; else compadd -S '' @; fi
}

`

const main = (commands: readonly CompletedCommand[]): string => `
_postern() {
  local -a commands=(
${described(commands.map(({ name, summary }) => [name, summary]))}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  if (($+functions[_postern_$words[1]])); then _postern_$words[1]; fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _postern "$@"; else compdef _postern postern; fi
`

export const zshCompletion = (commands: readonly CompletedCommand[]): string =>
  [HEAD, ...commands.map(commandFunction), main(commands)].join('')
