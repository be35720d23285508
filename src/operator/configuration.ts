/** The admin API's routes for the configuration: in force, and on disk (C11.5.4). */
import {
  type FileCheck,
  type FileDifference,
  MOST_PATHS,
  type NoFile,
} from '../watch/status/configuration-orders.ts'
import {
  type AdminAnswer,
  type Operation,
  count,
  members,
  ok,
  problemsSchema,
  refuse,
  type Schema,
  text,
  WHO,
} from './operation.ts'

const lines = (description: string): Schema => ({ type: 'array', items: { type: 'string' }, description })

const NEEDS_RESTART = lines('Key paths that differ and that only a restart changes: a reload refuses them.')

const checkSchema = members(
  {
    fits: { type: 'boolean', description: 'Whether a reload would put it in force.' },
    problems: lines('Each problem with its place in the file, for people. No secret.'),
    warnings: lines('What is served all the same.'),
    needsRestart: NEEDS_RESTART,
  },
  ['fits', 'problems', 'warnings', 'needsRestart'],
)

const accessSchema = (description: string): Schema => ({
  type: 'array',
  items: members(
    {
      kind: { enum: ['anybody', 'client', 'role', 'user'], description: 'Of what kind the party is.' },
      who: text('A client id, a role or a user name.'),
      what: text('Such as `GET fund-data/fund-list (business)`; of a user, the role.'),
      where: text('A business; empty if the right is not tied to one.', { minLength: 0 }),
    },
    ['kind', 'who', 'what', 'where'],
  ),
  description,
})

const differenceSchema = members(
  {
    same: { type: 'boolean', description: 'Whether the file says what is in force.' },
    changed: lines(`Key paths that differ, without their values; the first ${MOST_PATHS}.`),
    changedCount: count('How many differ.'),
    needsRestart: NEEDS_RESTART,
    gained: accessSchema('Who would gain access, to what, and where.'),
    lost: accessSchema('Who would lose it.'),
    withStored: {
      type: 'boolean',
      description: 'Whether clients and users of the store were compared too; there may be too many.',
    },
  },
  ['same', 'changed', 'changedCount', 'needsRestart', 'gained', 'lost', 'withStored'],
)

const answerOf = (result: FileCheck | FileDifference | NoFile): AdminAnswer =>
  'unreadable' in result ? refuse('there is no file that could be compared', result.unreadable) : ok(result)

const NO_FILE = ['It does not come from a file, or that has problems', problemsSchema] as const

export const CONFIGURATION_ROUTES: readonly Operation[] = [
  {
    method: 'GET',
    path: '/configuration',
    operationId: 'showConfiguration',
    needs: 'inspect',
    summary:
      'The configuration in force: extended, with defaults and what the environment sets, without secrets; without users for who lacks the right `administer`',
    answers: { 200: ['As it is in force', { type: 'object' }] },
    handle: (control) => ok(control.configuration()),
  },
  {
    method: 'POST',
    path: '/configuration/check',
    operationId: 'checkConfiguration',
    needs: 'inspect',
    summary: 'Check the file on disk as a reload would, and put nothing in force',
    body: members(WHO),
    bodyOptional: true,
    answers: { 200: ['What a reload would say', checkSchema], 409: NO_FILE },
    handle: async ({ onDisk }) => answerOf(await onDisk.check()),
  },
  {
    method: 'GET',
    path: '/configuration/diff',
    operationId: 'compareConfiguration',
    needs: 'inspect',
    summary: 'What a reload would change: settings, and who would gain or lose access',
    answers: { 200: ['The difference', differenceSchema], 409: NO_FILE },
    handle: async ({ onDisk }) => answerOf(await onDisk.compare()),
  },
]
