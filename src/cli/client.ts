import { parseArgs } from 'node:util'
import { DURATION_PATTERN, parseDuration } from '../kernel/units.ts'
import { type Subcommand, singleName, type Terminal, UsageError, commandOf } from './command.ts'
import { plainFacts } from '../operations/acts.ts'
import { type DirectoryAct, editDirectory, linesOf } from './edit-directory.ts'
import { changeClient } from './change-client.ts'
import {
  CLIENT_ARGUMENTS,
  CLIENT_OPTIONS,
  CLIENT_OPTIONS_HELP,
  givenKeys,
  JSON_TOO,
} from './client-options.ts'
import { DIRECTORY_ORDER_NOTES, ORDER } from './order-options.ts'
import { printJson, printRows } from './terminal.ts'
import { Report } from '../config/report.ts'

/** The default grants of each kind (C6.1.5, C6.2). */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  customer: ['password', 'refresh_token'],
  partner: ['authorization_code', 'refresh_token'],
  public: ['authorization_code', 'refresh_token'],
}

type Values = Readonly<Record<string, unknown>>

/** The record as the options say. Keys without an option get the defaults of the record. */
function recordOf(id: string, given: Values): Values & { readonly id: string; readonly kind: string } {
  const kind = typeof given['kind'] === 'string' ? given['kind'] : ''
  const byKind = { grants: GRANTS[kind] ?? GRANTS['customer'], requirePkce: kind !== 'customer' }
  return { ...byKind, ...given, id, kind }
}

function showSecret(
  id: string,
  secret: string | undefined,
  asJson: boolean | undefined,
  terminal: Terminal,
): void {
  if (asJson === true) {
    printJson({ client_id: id, ...(secret !== undefined && { client_secret: secret }) }, terminal)
    return
  }
  terminal.stdout.write(`client_id      ${id}\n`)
  if (secret === undefined) return
  terminal.stdout.write(`client_secret  ${secret}\n`)
  terminal.stderr.write('The secret is shown only now: the store has only its hash.\n')
}

/** No secret is in the record: it is made later, and hashed. */
const addedAct = (client: string, record: Values): DirectoryAct => ({
  event: 'client.added',
  client,
  change: plainFacts(record),
})

const add: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: CLIENT_ARGUMENTS,
  })
  const id = singleName(positionals, 'client id')
  const record = recordOf(id, givenKeys(values))
  const work = async ({ clients }: Parameters<Parameters<typeof editDirectory>[0]['work']>[0]) => {
    const { secret, warnings } = await clients.add(record)
    const report = new Report()
    report.problems.push(...warnings)
    for (const line of linesOf(report, CLIENT_OPTIONS)) terminal.stderr.write(`postern: ${line} (warning)\n`)
    showSecret(id, secret, values.json, terminal)
  }
  const act = addedAct(id, record)
  return editDirectory({ order: values, options: CLIENT_OPTIONS, work, act }, terminal)
}

const untilText = (ms: number | undefined): string =>
  ms === undefined ? '' : `, the old one until ${new Date(ms).toISOString().slice(0, 19)}Z`

const list: Subcommand['run'] = (args, terminal) => {
  const { values } = parseArgs({ args: [...args], options: JSON_TOO })
  return editDirectory(
    {
      order: values,
      work: async ({ clients }) => {
        const all = await clients.list()
        if (values.json === true) printJson(all, terminal)
        else
          printRows(
            ['ID', 'KIND', 'SOURCE', 'STATE', 'SECRETS', 'NAME'],
            all.map(({ id, kind, name, source, disabled, secrets, oldSecretEndsAt }) => [
              ...[id, kind, source, disabled ? 'disabled' : 'enabled'],
              ...[`${secrets}${untilText(oldSecretEndsAt)}`, name],
            ]),
            terminal,
          )
      },
    },
    terminal,
  )
}

/** `disable`, `enable` and `remove`. */
const onState =
  (action: 'disable' | 'enable' | 'remove', done: string): Subcommand['run'] =>
  (args, terminal) => {
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: ORDER })
    const id = singleName(positionals, 'client id')
    return editDirectory(
      {
        order: values,
        act: { event: `client.${action}d`, client: id },
        work: async ({ clients }) => {
          await clients[action](id)
          terminal.stdout.write(`${id}: ${done}\n`)
        },
      },
      terminal,
    )
  }

const OVERLAP = '1d'

function overlapOf(given: string): number {
  if (!new RegExp(DURATION_PATTERN).test(given))
    throw new UsageError(`--overlap: expected a duration such as "12h" or "7d", got "${given}"`)
  return parseDuration(given)
}

const rotateSecret: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...JSON_TOO, overlap: { type: 'string', default: OVERLAP } },
  })
  const id = singleName(positionals, 'client id')
  const overlap = overlapOf(values.overlap)
  return editDirectory(
    {
      order: values,
      act: { event: 'client.secret_rotated', client: id, change: { overlapMs: overlap } },
      work: async ({ clients }) => {
        showSecret(id, await clients.rotateSecret(id, overlap), values.json, terminal)
        terminal.stderr.write(
          overlap > 0
            ? `The old secret is valid until ${new Date(Date.now() + overlap).toISOString()}.\n`
            : 'The old secret is no longer valid.\n',
        )
      },
    },
    terminal,
  )
}

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  add: {
    usage: 'add ID --kind KIND --name NAME …',
    summary: 'Add a client, and show its secret',
    options: [
      ...CLIENT_OPTIONS_HELP,
      '--json                            print the id and the secret as JSON',
    ],
    run: add,
  },
  change: {
    usage: 'change ID …',
    summary: 'Change what is given of a client in the store; the rest stays',
    options: [
      'Takes the options of add. A list replaces the whole list before. An empty value empties a list, or removes a',
      "value: --business ''. What was issued for a business that is gone ends; access tokens keep their scopes until they",
      'expire. --no-secret-post, --no-resource and --require-pkce take away.',
      '--json                            print what has changed, and what has ended, as JSON',
    ],
    run: changeClient,
  },
  list: {
    usage: 'list [--json]',
    summary: 'List the clients of the configuration and of the store',
    run: list,
  },
  disable: {
    usage: 'disable ID',
    summary: 'Refuse all its requests and revoke its tokens, in every process within a second',
    run: onState('disable', 'disabled, and its access tokens revoked'),
  },
  remove: {
    usage: 'remove ID',
    summary: 'Remove it, and end its tokens and consents. Its id may be given to another client',
    run: onState('remove', 'removed, and what it held has ended'),
  },
  enable: {
    usage: 'enable ID',
    summary: 'Accept its requests again. What was revoked stays revoked',
    run: onState('enable', 'enabled'),
  },
  'rotate-secret': {
    usage: 'rotate-secret ID [--overlap 1d] [--json]',
    summary: 'Make another secret. The old one stays valid for the overlap (0s: not at all)',
    run: rotateSecret,
  },
}

const NOTES = `Clients of the configuration are listed, and changed only in the configuration.

${DIRECTORY_ORDER_NOTES}`

/** `postern client …`: manages the clients in the store. */
export const clientCommand = commandOf('client', SUBCOMMANDS, NOTES)
