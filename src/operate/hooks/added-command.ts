/** A command that an extension adds, or verbs that it adds to a command of the core's. */
import type { Terminal } from '../operation/terminal.ts'
import type { Verb } from '../operation/verb.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { SharedStoreKinds } from '../settings/shared-stores.ts'
import type { CommandAct } from '../trail/commands.ts'
import type { TrailOpener } from './kept-trail.ts'

/** The parts that the command line gives to the work of a verb. */
export interface CommandParts {
  readonly terminal: Terminal
  /** The configuration that is meant, and its file. Undefined if it has problems; then they are written. @throws UsageError */
  readonly read: () => { readonly file: string; readonly configuration: Configuration } | undefined
  /** Does the work, which gives an exit code, and records it (C12.1.7). */
  readonly recorded: (
    configuration: Configuration,
    act: CommandAct,
    work: () => Promise<number>,
  ) => Promise<number>
  /** As `TrailOpener.rehost`. Does nothing without an extension that keeps a trail. */
  readonly rehost: TrailOpener['rehost']
  /** The kinds of stores that nodes share. */
  readonly stores: SharedStoreKinds
  /** Whether a service uses a data folder. */
  readonly hasService: (data: string) => boolean
  /** Why a data folder must not be used: it has a trail, and no extension keeps one. Undefined if it may be. */
  readonly unkeptTrail: (data: string) => string | undefined
}

/** The options and arguments of a command line. */
export interface GivenWords {
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly positionals: readonly string[]
}

export interface AddedVerb extends Verb {
  /** Whether it changes something: then it takes a reason and the operator's own token. Each verb takes `--config` and `--json`. */
  readonly changes: boolean
  /** The promise gives the exit code. It may reject with StoreError, KeyError or Fault, whose message is written. */
  readonly work: (given: GivenWords, parts: CommandParts) => Promise<number>
}

export interface AddedCommand {
  /** For the list of all commands. */
  readonly summary: string
  /** By the word behind the command's name. The one under `''` is meant if no verb is named. */
  readonly verbs: Readonly<Record<string, AddedVerb>>
  /** Paragraphs about all its verbs. */
  readonly notes?: readonly string[]
  /** The command of the core behind which the list has it. Default: it is the first of the last group. */
  readonly after?: string
  /** The words behind its name as its help lists them. Default: those of the extension's operations first. */
  readonly order?: readonly string[]
}
