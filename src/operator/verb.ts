/**
 * What a verb of the command line takes: arguments, options with their help and their kind of value, examples. What is
 * accepted, the words for what is wrong, `--help` and the completion of shells are made from it.
 */
import type { Kind } from './option-kinds.ts'

/** One option of a verb, under its name without dashes. */
export interface Option {
  readonly type: 'string' | 'boolean'
  /** For people: what it does, and the default if there is one. */
  readonly help: string
  /** Of a `string`: what its value is. Default: `text`. */
  readonly kind?: Kind
  /** What help texts call the value, such as `CODE`. Default: that of the kind. */
  readonly value?: string
  /** The only values there are. */
  readonly words?: readonly string[]
  /** Values that shells propose, where others may fit too. */
  readonly proposes?: readonly string[]
  /** Whether it may stand several times. */
  readonly multiple?: boolean
  /** One letter: `-H`. */
  readonly short?: string
  /** Of a `boolean`: whether there is `--no-NAME` too. */
  readonly negatable?: boolean
}

export type Options = Readonly<Record<string, Option>>

/** An argument without a name. */
export interface Argument {
  /** What help texts and messages call it, such as `FILE`. */
  readonly name: string
  readonly kind?: Kind
  /** Values that shells propose. */
  readonly proposes?: readonly string[]
  readonly optional?: boolean
  /** Whether it may stand several times. Only of the last argument. */
  readonly repeated?: boolean
}

export interface Example {
  /** A whole command line, as it is typed. */
  readonly line: string
  /** What it does. */
  readonly does: string
}

/** The table of one verb. */
export interface Verb {
  /** A sentence without its full stop. */
  readonly summary: string
  /** What follows the name in usage lines, where arguments and options do not tell it. */
  readonly usage?: string
  /** Paragraphs. */
  readonly notes?: readonly string[]
  readonly arguments: readonly Argument[]
  readonly options: Options
  readonly examples: readonly Example[]
}

type ValueOf<O extends Option> = O['type'] extends 'boolean'
  ? boolean
  : O extends { readonly multiple: true }
    ? readonly string[]
    : string

/** The values of options by name. */
export type Values<O extends Options> = { readonly [Name in keyof O]?: ValueOf<O[Name]> | undefined }

/** What was given on the command line. */
export interface Given<V extends Verb> {
  readonly values: Values<V['options']>
  /** As many as the table says. */
  readonly positionals: readonly string[]
}

/** The exit codes of all commands. */
export const EXIT = {
  done: 0,
  /** The command failed. */
  failed: 1,
  /** Nothing was done: the command line or the configuration has a problem. */
  refused: 2,
} as const

/** The command line is wrong. The message goes to stderr, and the exit code is 2. */
export class UsageError extends Error {}
