/** What shells propose as values of options and arguments. */
import { KINDS } from '../../operator/option-kinds.ts'
import type { Argument, Option } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'

/** A command with all that a shell has to know. */
export interface CompletedCommand {
  readonly name: string
  readonly summary: string
  readonly table: CommandTable
}

/** `nothing`: any text fits, and none is proposed. A list: one of these words. */
export type Proposal = 'nothing' | 'files' | 'folders' | 'at-files' | readonly string[]

/** What is proposed as the value of an option or of an argument. */
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
