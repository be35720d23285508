/**
 * What a verb of the command line takes: arguments, options with their help and their kind of value, examples. What is
 * accepted, the words for what is wrong, `--help` and the completion of shells are made from it.
 */
import { DURATION_PATTERN, isInstant } from '../../base/kernel/units.ts'

const DURATION = new RegExp(DURATION_PATTERN)
const COUNT = /^([1-9][0-9]{0,2}|1000)$/
const SECONDS = /^[0-9]{1,9}$/

export const isDuration = (text: string): boolean => DURATION.test(text)

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol
  return protocol === 'http:' || protocol === 'https:'
}

interface KindRow {
  /** What help texts call such a value. */
  readonly value: string
  /** What a shell completes it with. `at-files`: behind an `@`. */
  readonly completes?: 'files' | 'folders' | 'at-files'
  /** Absent: any text fits. */
  readonly fits?: (text: string) => boolean
  /** Follows "expected". */
  readonly expected: string
}

/** The kind of value that an option or argument has. Durations, sizes and times are written as in the configuration. */
type Kind = keyof typeof ROWS

const ROWS = {
  text: { value: 'TEXT', expected: 'a text' },
  file: { value: 'FILE', expected: 'a file', completes: 'files' },
  'at-file': { value: '@FILE', expected: '@ and a file', completes: 'at-files' },
  folder: { value: 'FOLDER', expected: 'a folder', completes: 'folders' },
  duration: {
    value: 'DURATION',
    fits: isDuration,
    expected: 'a duration such as 30s, 10m, 12h or 7d',
  },
  /** How long a client shall wait: the header has seconds. */
  wait: {
    value: 'DURATION',
    fits: (text: string) => isDuration(text) || SECONDS.test(text),
    expected: 'a duration such as 90s or 10m, or a number of seconds',
  },
  /** A moment, or a time from now. */
  time: {
    value: 'TIME',
    fits: (text: string) => isDuration(text) || isInstant(text),
    expected: 'a time with its zone, such as 2026-02-01T20:00+10:00, or a duration from now, such as 30m',
  },
  rows: {
    value: 'NUMBER',
    fits: (text: string) => COUNT.test(text),
    expected: 'a number from 1 to 1000',
  },
  url: { value: 'URL', fits: isHttpUrl, expected: 'a URL such as http://127.0.0.1:9090' },
} as const satisfies Readonly<Record<string, KindRow>>

export const KINDS: Readonly<Record<Kind, KindRow>> = ROWS

/** One option of a verb, under its name without dashes. */
export interface Option {
  readonly type: 'string' | 'boolean'
  /** For people: what it does, and the default if there is one. */
  readonly help: string
  /** The kind of value that a `string` has. Default: `text`. */
  readonly kind?: Kind
  /** What help texts call the value, such as `CODE`. Default: that of the kind. */
  readonly value?: string
  /** The only values there are. */
  readonly words?: readonly string[]
  /** Values that shells propose, where others may fit too. */
  readonly proposes?: readonly string[]
  /** Whether it may be given several times. */
  readonly multiple?: boolean
  /** One letter: `-H`. */
  readonly short?: string
  /** Whether a `boolean` has `--no-NAME` too. */
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
  /** Whether it may be given several times. Only for the last argument. */
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
  /** Done, but something is left for a person to decide. */
  undecided: 3,
} as const

/** The command line is wrong. The message goes to stderr, and the exit code is 2. */
export class UsageError extends Error {}
