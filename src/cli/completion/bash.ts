/** The completion of bash, from 3.2 on: plain functions, since that version has no maps. */
import type { Verb } from '../../operator/verb.ts'
import { verbNames } from '../verbs.ts'
import { type CompletedCommand, flagsOf, type Proposal, proposalOf } from './values.ts'

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** `nothing`, `files`, … or words, in the one text that the function of the shell reads. */
const proposalText = (proposal: Proposal): string =>
  typeof proposal === 'string' ? `<${proposal}>` : proposal.join(' ')

interface Case {
  /** What is matched, as the shell writes it. */
  readonly pattern: string
  /** What is printed. */
  readonly text: string
}

/** A function of the shell that prints a text for its arguments. Patterns with the same text share a line. */
function lookup(name: string, cases: readonly Case[]): string {
  const casesOf = Map.groupBy(cases, ({ text }) => text)
  const lines = [...casesOf].map(
    ([text, same]) => `    ${same.map(({ pattern }) => pattern).join(' | ')}) echo ${quote(text)} ;;`,
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
  pattern: quote(place),
  text: [...Object.entries(verb.options).flatMap(([name, option]) => flagsOf(name, option)), '--help'].join(
    ' ',
  ),
})

const valueCases = ({ place, verb }: VerbAt): readonly Case[] =>
  Object.entries(verb.options)
    .filter(([, { type }]) => type === 'string')
    .flatMap(([name, option]) => {
      const text = proposalText(proposalOf(option))
      return flagsOf(name, option).map((flag) => ({ pattern: quote(`${place} ${flag}`), text }))
    })

/** What is proposed for an argument, by its place. The last one may stand several times. */
function argumentCases({ place, verb }: VerbAt): readonly Case[] {
  return verb.arguments
    .map((argument, at) => ({
      pattern: argument.repeated === true ? `${quote(`${place} `)}*` : quote(`${place} ${at + 1}`),
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
    .map(({ name, table }) => ({ pattern: quote(name), text: verbNames(table).join(' ') }))
    .filter(({ text }) => text !== '')
  return [
    '# The completion of postern for bash. Load it by: source <(postern completion bash)\n',
    `_postern_commands() {\n  echo ${quote(commands.map(({ name }) => name).join(' '))}\n}\n`,
    lookup('_postern_verbs', named),
    lookup('_postern_options', verbs.map(optionCases)),
    lookup('_postern_values', verbs.flatMap(valueCases)),
    lookup('_postern_arguments', verbs.flatMap(argumentCases)),
    MAIN,
  ].join('')
}
