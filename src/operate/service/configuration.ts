/** The configuration: in force, and on disk; the file is checked, compared and put in force (C11.5.4). */
import type { AccessRight, AccessChange } from '../settings/access.ts'
import type { FileCheck, FileDifference, NoFile } from './compare-configuration.ts'
import {
  type AdminAnswer,
  commandLine,
  count,
  members,
  notNow,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  type Schema,
  textSchema,
  WHO,
  flagSchema,
  listSchema,
  textsSchema,
} from '../operation/operation.ts'
import { countOf } from '../operation/terminal.ts'
import { EXIT } from '../operation/verb.ts'

/** How many key paths a comparison names at most. */
const MOST_PATHS = 200

const NEEDS_RESTART = textsSchema(
  'Key paths that differ and that only a restart changes: a reload refuses them.',
)

const checkSchema = members(
  {
    fits: flagSchema('Whether a reload would put it in force.'),
    problems: textsSchema('Each problem with its place in the file, for people. No secret.'),
    warnings: textsSchema('What is served all the same.'),
    needsRestart: NEEDS_RESTART,
  },
  ['fits', 'problems', 'warnings', 'needsRestart'],
)

const accessSchema = (description: string): Schema =>
  listSchema(
    members(
      {
        kind: {
          enum: ['anybody', 'client', 'role', 'user', 'operation'],
          description: 'Of what kind the party is.',
        },
        who: textSchema('A client id, a role or a user name; of a version, the operation.'),
        what: textSchema(
          'Such as `GET fund-data/fund-list (business)`; of a user, the role; of an operation, `version 1`.',
        ),
        where: textSchema('A business; empty if the right is not tied to one.', { minLength: 0 }),
      },
      ['kind', 'who', 'what', 'where'],
    ),
    description,
  )

const differenceSchema = members(
  {
    same: flagSchema('Whether the file says what is in force.'),
    changed: textsSchema(`Key paths that differ, without their values; the first ${MOST_PATHS}.`),
    changedCount: count('How many differ.'),
    needsRestart: NEEDS_RESTART,
    gained: accessSchema('Who would gain access, to what, and where.'),
    lost: accessSchema('Who would lose it.'),
    withStored: flagSchema(
      'Whether clients and users of the store were compared too; there may be too many.',
    ),
  },
  ['same', 'changed', 'changedCount', 'needsRestart', 'gained', 'lost', 'withStored'],
)

const answerOf = (result: FileCheck | FileDifference | NoFile): AdminAnswer =>
  'unreadable' in result ? conflict('there is no file that could be compared', result.unreadable) : ok(result)

const NO_FILE = ['It does not come from a file, or that has problems', problemsSchema] as const

const HEADINGS = {
  anybody: 'anybody',
  client: 'clients',
  role: 'roles',
  user: 'users',
  operation: 'versions',
} as const

/** One line for each access that somebody gains (`+`) or loses (`-`), with all places where. */
function accessLines(sign: '+' | '-', changes: readonly AccessRight[]): string[] {
  const grouped = Map.groupBy(changes, ({ who, what }) => `${who}  ${what}`)
  return [...grouped].map(([text, each]) => {
    const places = each.map(({ where }) => where).filter((where) => where !== '')
    return `  ${sign} ${text}${places.length > 0 ? `  at ${places.join(', ')}` : ''}\n`
  })
}

/** Who gains and who loses access, for people. */
export function accessChangeText({ gained, lost }: AccessChange): string {
  const parts = Object.entries(HEADINGS).flatMap(([kind, heading]) => {
    const mine = (changes: readonly AccessRight[]): AccessRight[] =>
      changes.filter((access) => access.kind === kind)
    const all = [...accessLines('-', mine(lost)), ...accessLines('+', mine(gained))]
    return all.length === 0 ? [] : [`${heading}\n`, ...all]
  })
  return parts.length === 0 ? 'nobody gains or loses access\n' : parts.join('')
}

const asLines = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const restartLines = (paths: readonly string[]): string =>
  asLines(paths.map((path) => `${path}  cannot change while the service runs: restart it`))

function checkText({ fits, problems, warnings, needsRestart }: FileCheck): string {
  const end = fits ? 'a reload would put it in force' : 'a reload would be refused'
  return `${asLines([...problems, ...warnings])}${restartLines(needsRestart)}${end}\n`
}

const STORED = 'The store has too many clients or users: only those of the configuration were compared.\n'

function differenceText(difference: FileDifference): string {
  const { same, changed, changedCount, needsRestart, withStored } = difference
  if (same) return 'the file says what is in force\n'
  const more = changedCount > changed.length ? [`  and ${changedCount - changed.length} more`] : []
  const settings = asLines([
    `${countOf(changedCount, 'setting')} differ${changedCount === 1 ? 's' : ''}`,
    ...changed.map((path) => `  ${path}`),
    ...more,
  ])
  return `${settings}${restartLines(needsRestart)}${accessChangeText(difference)}${withStored ? '' : STORED}`
}

const SHOW: AdminOperation = {
  method: 'GET',
  path: '/configuration',
  operationId: 'showConfiguration',
  needs: 'inspect',
  summary:
    'The configuration in force: extended, with defaults and what the environment sets, without secrets; without users for who lacks the right `administer`',
  answers: { 200: ['As it is in force', { type: 'object' }] },
  handle: async ({ configuration, settings }) => {
    const { shownConfiguration } = await import('./compare-configuration.ts')
    return ok(shownConfiguration(configuration(), settings))
  },
  commands: [
    commandLine({
      words: ['configuration show'],
      summary: 'Print the configuration in force as JSON, without its secrets',
      arguments: [],
      options: {},
      examples: [{ line: 'postern configuration show', does: 'print all of it' }],
    }),
  ],
}

const CHECK: AdminOperation = {
  method: 'POST',
  path: '/configuration/check',
  operationId: 'checkConfiguration',
  needs: 'inspect',
  summary: 'Check the file on disk as a reload would, and put nothing in force',
  body: members(WHO),
  bodyOptional: true,
  answers: { 200: ['What a reload would say', checkSchema], 409: NO_FILE },
  handle: async (service) => {
    const { checkFile } = await import('./compare-configuration.ts')
    return answerOf(await checkFile(service))
  },
  commands: [
    commandLine({
      words: ['configuration check'],
      summary: 'Check the file on disk as a reload would. Exit code 0: it fits, 2: not',
      arguments: [],
      options: {},
      examples: [{ line: 'postern configuration check', does: 'tell whether a reload would be refused' }],
      text: checkText,
      exit: ({ fits }: FileCheck) => (fits ? EXIT.done : EXIT.refused),
    }),
  ],
}

const COMPARE: AdminOperation = {
  method: 'GET',
  path: '/configuration/diff',
  operationId: 'compareConfiguration',
  needs: 'inspect',
  summary: 'What a reload would change: settings, and who would gain or lose access',
  answers: { 200: ['The difference', differenceSchema], 409: NO_FILE },
  handle: async (service) => {
    const { compareFile } = await import('./compare-configuration.ts')
    return answerOf(await compareFile(service, MOST_PATHS))
  },
  commands: [
    commandLine({
      words: ['configuration diff'],
      summary:
        'Show what a reload would change: settings, without values, and who gains (+) or loses (-) access',
      arguments: [],
      options: {},
      examples: [{ line: 'postern configuration diff', does: 'show what the file changes' }],
      text: differenceText,
    }),
  ],
}

/** The answer of a reload, and what both command lines of it have. */
interface Reloaded {
  readonly warnings: readonly string[]
  readonly revoked: number
}

const RELOAD_LINE = {
  notes: ['A configuration that has problems is refused, and changes nothing: exit code 1.'],
  arguments: [],
  options: {},
  text: ({ warnings, revoked }: Reloaded) => `${asLines(warnings)}reloaded; ${revoked} revoked\n`,
}

export const RELOAD: AdminOperation = {
  method: 'POST',
  path: '/reload',
  operationId: 'reload',
  needs: 'operate',
  summary:
    'Read the configuration anew: checked whole, then in force in every process at once, or not at all',
  body: members(WHO),
  bodyOptional: true,
  answers: {
    200: [
      'In force',
      members(
        {
          outcome: { const: 'reloaded' },
          warnings: { type: 'array', items: { type: 'string' } },
          revoked: count('Revocation rules made for who was removed from the directory.'),
        },
        ['outcome', 'warnings', 'revoked'],
      ),
    ],
    409: ['Refused: nothing has changed', problemsSchema],
  },
  handle: async (service, { operator }) => {
    const outcome = await service.reload(operator)
    if (outcome.outcome === 'reloaded') return ok(outcome)
    const refused = outcome.cause === 'trail' ? notNow : conflict
    return refused('the configuration was refused; nothing has changed', outcome.problems)
  },
  commands: [
    commandLine({
      ...RELOAD_LINE,
      words: ['reload'],
      summary: 'Make a running service read its configuration again',
      examples: [{ line: "postern reload --reason 'new client'", does: 'put the file on disk in force' }],
    }),
    commandLine({
      ...RELOAD_LINE,
      words: ['configuration reload'],
      summary: 'Put the file on disk in force, or refuse it and change nothing',
      examples: [{ line: 'postern configuration reload', does: 'the same as `postern reload`' }],
    }),
  ],
}

/** All except RELOAD, which is elsewhere in the OpenAPI document. */
export const CONFIGURATION_OPERATIONS: readonly AdminOperation[] = [SHOW, CHECK, COMPARE]
