import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER, SERVICE_ORDER } from './order.ts'
import { RELOAD } from './orders.ts'

const OPTIONS = { ...JSON_ANSWER, ...SERVICE_ORDER } as const

export const CONFIGURATION = {
  verbs: {
    check: {
      summary: 'Check the file on disk as a reload would. Exit code 0: it fits, 2: not',
      arguments: [],
      options: OPTIONS,
      examples: [{ line: 'postern configuration check', does: 'tell whether a reload would be refused' }],
    },
    diff: {
      summary:
        'Show what a reload would change: settings, without values, and who gains (+) or loses (-) access',
      arguments: [],
      options: OPTIONS,
      examples: [{ line: 'postern configuration diff', does: 'show what the file changes' }],
    },
    reload: {
      ...RELOAD.verbs[''],
      summary: 'Put the file on disk in force, or refuse it and change nothing',
      examples: [{ line: 'postern configuration reload', does: 'the same as `postern reload`' }],
    },
    show: {
      summary: 'Print the configuration in force as JSON, without its secrets',
      arguments: [],
      options: OPTIONS,
      examples: [{ line: 'postern configuration show', does: 'print all of it' }],
    },
  },
  notes: [
    'The running service reads its own file; `postern check` and `postern diff` do it without one. While nothing of the file can be read, give --admin-url and your own token.',
  ],
} as const satisfies CommandTable
