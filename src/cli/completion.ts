/** `postern completion bash|zsh`: made from the tables of all commands, so that it knows what they take (C11.6). */
import type { Terminal } from '../operate/operation/terminal.ts'
import { type Argument, EXIT, KINDS, type Option, type Verb } from '../operate/operation/verb.ts'
import { type CommandName, COMMANDS, tableOfCommand } from './command-list.ts'
import { commandOf, type CommandTable, verbNames } from './line/command.ts'
import { valueName } from './line/options.ts'
import { COMPLETION } from './line/tables.ts'

// The proposals of shells for values of options and arguments.

/** A command with all that a shell has to know. */
export interface CompletedCommand {
  readonly name: string
  readonly summary: string
  readonly table: CommandTable
}

/** `nothing`: any text fits, and none is proposed. A list: one of these words. */
export type Proposal = 'nothing' | 'files' | 'folders' | 'at-files' | readonly string[]

/** The proposal for the value of an option or of an argument. */
export function proposalOf(of: Argument | Pick<Option, 'kind' | 'words' | 'proposes'>): Proposal {
  const words = ('words' in of ? of.words : undefined) ?? of.proposes
  if (words !== undefined) return words
  return KINDS[of.kind ?? 'text'].completes ?? 'nothing'
}

/** The names of an option, as they are typed. */
export const flagsOf = (name: string, { short, negatable }: Option): readonly string[] => [
  `--${name}`,
  ...(negatable === true ? [`--no-${name}`] : []),
  ...(short === undefined ? [] : [`-${short}`]),
]

// The completion of zsh, which shows what each command and option does.

const zshQuote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Brackets and colons end a part of what `_arguments` reads. */
const explanation = (text: string): string => text.replaceAll(/[\\:[\]]/g, String.raw`\$&`)
const message = (text: string): string => text.replaceAll(':', String.raw`\:`)

/** The first sentence, which fits on a line of a menu. */
const firstSentence = (text: string): string => text.split(/[.;:](?: |$)/, 1)[0] ?? ''

const ACTIONS = {
  nothing: '',
  files: '_files',
  folders: '_files -/',
  'at-files': '_postern_at_files',
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
  return ['_arguments :', ...specs.map((spec) => `    ${zshQuote(spec)}`)].join(' \\\n')
}

const described = (entries: readonly (readonly [name: string, summary: string])[]): string =>
  entries.map(([name, summary]) => `    ${zshQuote(`${name}:${firstSentence(summary)}`)}\n`).join('')

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

// The completion of bash, from 3.2 on: plain functions, because that version has no maps.

const bashQuote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** `nothing`, `files`, … or words, in the one text that the function of the shell reads. */
const proposalText = (proposal: Proposal): string =>
  typeof proposal === 'string' ? `<${proposal}>` : proposal.join(' ')

interface Case {
  /** The text that is matched, as the shell writes it. */
  readonly pattern: string
  /** The text that is printed. */
  readonly text: string
}

/** A function of the shell that prints a text for its arguments. Patterns with the same text share a line. */
function lookup(name: string, cases: readonly Case[]): string {
  const casesOf = Map.groupBy(cases, ({ text }) => text)
  const lines = [...casesOf].map(
    ([text, same]) => `    ${same.map(({ pattern }) => pattern).join(' | ')}) echo ${bashQuote(text)} ;;`,
  )
  return `${name}() {\n  case "$*" in\n${lines.join('\n')}\n  esac\n}\n`
}

interface VerbAt {
  /** `maintenance on`, or `status`. */
  readonly place: string
  readonly verb: Verb
}

const verbsAt = ({ name, table }: CompletedCommand): readonly VerbAt[] =>
  Object.entries(table.verbs).map(([word, verb]) => ({
    place: word === '' ? name : `${name} ${word}`,
    verb,
  }))

const optionCases = ({ place, verb }: VerbAt): Case => ({
  pattern: bashQuote(place),
  text: [...Object.entries(verb.options).flatMap(([name, option]) => flagsOf(name, option)), '--help'].join(
    ' ',
  ),
})

const valueCases = ({ place, verb }: VerbAt): readonly Case[] =>
  Object.entries(verb.options)
    .filter(([, { type }]) => type === 'string')
    .flatMap(([name, option]) => {
      const text = proposalText(proposalOf(option))
      return flagsOf(name, option).map((flag) => ({ pattern: bashQuote(`${place} ${flag}`), text }))
    })

/** The proposals for an argument, by its place. The last argument may be given several times. */
function argumentCases({ place, verb }: VerbAt): readonly Case[] {
  return verb.arguments
    .map((argument, at) => ({
      pattern: argument.repeated === true ? `${bashQuote(`${place} `)}*` : bashQuote(`${place} ${at + 1}`),
      text: proposalText(proposalOf(argument)),
    }))
    .filter(({ text }) => text !== '<nothing>')
}

const MAIN = String.raw`
_postern() {
  local IFS=$' \t\n'
  local cur=${'$'}{COMP_WORDS[COMP_CWORD]} prev=${'$'}{COMP_WORDS[COMP_CWORD-1]}
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=${'$'}{COMP_WORDS[COMP_CWORD-2]}; fi
  local command=${'$'}{COMP_WORDS[1]} verbs place proposal= first=2 at=1 index
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    proposal="$(_postern_commands) --help --version"
  else
    verbs=$(_postern_verbs "$command")
    place=$command
    if [[ -n $verbs && " $verbs " == *" ${'$'}{COMP_WORDS[2]} "* ]] && ((COMP_CWORD > 2)); then
      place="$command ${'$'}{COMP_WORDS[2]}" first=3
    fi
    if [[ $prev == -* ]]; then proposal=$(_postern_values "$place" "$prev"); fi
    if [[ -z $proposal && $cur == -* ]]; then proposal=$(_postern_options "$place"); fi
    if [[ -z $proposal ]]; then
      for ((index = first; index < COMP_CWORD; index++)); do
        case ${'$'}{COMP_WORDS[index]} in
          = | -*) ;;
          *) [[ -n $(_postern_values "$place" "${'$'}{COMP_WORDS[index-1]}") || ${'$'}{COMP_WORDS[index-1]} == = ]] || ((at++)) ;;
        esac
      done
      if [[ -n $verbs && $place == "$command" ]] && ((COMP_CWORD == 2)); then proposal=$verbs
      else proposal=$(_postern_arguments "$place" "$at"); fi
    fi
  fi
  _postern_propose "$proposal" "$cur"
}

_postern_propose() {
  local line
  case $1 in
    '' | '<nothing>') return ;;
    '<files>') compopt -o filenames 2>/dev/null; set -- -f "$2" "$2" ;;
    '<folders>') compopt -o filenames 2>/dev/null; set -- -d "$2" "$2" ;;
    '<at-files>') set -- "-P@ -f" "${'$'}{2#@}" "$2" ;;
    *) set -- "-W" "$2" "$1" ;;
  esac
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
    case $1 in
      -W) compgen -W "$3" -- "$2" ;;
      *) compgen $1 -- "$2" ;;
    esac
  )
}

complete -F _postern postern
`

export function bashCompletion(commands: readonly CompletedCommand[]): string {
  const verbs = commands.flatMap(verbsAt)
  const named = commands
    .map(({ name, table }) => ({ pattern: bashQuote(name), text: verbNames(table).join(' ') }))
    .filter(({ text }) => text !== '')
  return [
    '# The completion of postern for bash. Load it by: source <(postern completion bash)\n',
    `_postern_commands() {\n  echo ${bashQuote(commands.map(({ name }) => name).join(' '))}\n}\n`,
    lookup('_postern_verbs', named),
    lookup('_postern_options', verbs.map(optionCases)),
    lookup('_postern_values', verbs.flatMap(valueCases)),
    lookup('_postern_arguments', verbs.flatMap(argumentCases)),
    MAIN,
  ].join('')
}

const completed = (): Promise<readonly CompletedCommand[]> =>
  Promise.all(
    Object.entries(COMMANDS).map(async ([name, { summary }]) => ({
      name,
      summary,
      table: await tableOfCommand(name as CommandName),
    })),
  )

const print =
  (script: (commands: readonly CompletedCommand[]) => string) =>
  async (_given: unknown, { stdout }: Terminal): Promise<number> => {
    stdout.write(script(await completed()))
    return EXIT.done
  }

export const completionCommand = commandOf(COMPLETION, {
  bash: print(bashCompletion),
  zsh: print(zshCompletion),
})
