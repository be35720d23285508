/** The kinds of values that options and arguments have. Durations, sizes and times are written as in the configuration. */
import { DURATION_PATTERN, isInstant } from '../kernel/units.ts'

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

export type Kind = keyof typeof ROWS

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
