import { parseArgs } from 'node:util'
import { type Subcommand, singleName, UsageError, commandOf } from './command.ts'
import { randomUUID } from 'node:crypto'
import { plainFacts } from '../operations/acts.ts'
import { editDirectory } from './edit-directory.ts'
import { DIRECTORY_ORDER_NOTES, ORDER } from './order-options.ts'
import { printJson, printRows, readPassword } from './terminal.ts'

/** The option for each key of a user's record (src/directory/config.ts). */
const OPTIONS = {
  username: 'USERNAME',
  subject: 'subject',
  customers: 'customer',
  access: 'access',
  claims: 'claim',
} as const

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const CONFIG = ORDER

type Tree = { [key: string]: string | Tree }

/**
 * The pairs of a repeated option `NAME=VALUE`.
 *
 * @throws UsageError if one has no `=`
 */
function pairs(option: string, given: readonly string[] = []): (readonly [string, string])[] {
  return given.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`--${option}: expected NAME=VALUE, got "${pair}"`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

/** The claims as a tree: `address.locality=Sydney` is in `address`. */
function claimsOf(given: readonly string[] | undefined): Tree {
  const claims: Tree = {}
  for (const [name, value] of pairs('claim', given)) {
    const [outer = '', inner] = name.split(/\.(.*)/s)
    if (inner === undefined) claims[outer] = value
    else {
      const before = claims[outer]
      claims[outer] = { ...(typeof before === 'object' && before), [inner]: value }
    }
  }
  return claims
}

const add: Subcommand['run'] = async (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...CONFIG, subject: text, customer: texts, access: texts, claim: texts },
  })
  const { subject = randomUUID(), customer: customers = [] } = values
  const written = {
    username: singleName(positionals, 'user name'),
    subject,
    customers,
    access: Object.fromEntries(pairs('access', values.access)),
    claims: claimsOf(values.claim),
  }
  const password = await readPassword(terminal, true)
  return editDirectory(
    {
      order: values,
      act: {
        event: 'user.added',
        user: written.username,
        subject,
        change: plainFacts({ customers, access: written.access }),
      },
      options: OPTIONS,
      work: async ({ users }) => {
        const made = await users.add(written, password)
        terminal.stdout.write(`${made.username}: added with the subject ${made.subject}\n`)
      },
    },
    terminal,
  )
}

const stateOf = ({ disabled, locked }: { readonly disabled: boolean; readonly locked: boolean }): string =>
  disabled ? 'disabled' : locked ? 'locked' : 'enabled'

const list: Subcommand['run'] = (args, terminal) => {
  const { values } = parseArgs({ args: [...args], options: { ...CONFIG, json: { type: 'boolean' } } })
  return editDirectory(
    {
      order: values,
      work: async ({ users }) => {
        const all = await users.list()
        if (values.json === true) printJson(all, terminal)
        else
          printRows(
            ['USERNAME', 'SOURCE', 'STATE', 'CUSTOMERS', 'ACCESS', 'SUBJECT'],
            all.map((user) => [
              ...[user.username, user.source, stateOf(user), user.customers.join(' ')],
              Object.entries(user.access)
                .map(([business, role]) => `${business}=${role}`)
                .join(' '),
              user.subject,
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
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: CONFIG })
    const username = singleName(positionals, 'user name')
    return editDirectory(
      {
        order: values,
        act: { event: `user.${action}d`, user: username },
        work: async ({ users }) => {
          await users[action](username)
          terminal.stdout.write(`${username}: ${done}\n`)
        },
      },
      terminal,
    )
  }

const setPassword: Subcommand['run'] = async (args, terminal) => {
  const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: CONFIG })
  const username = singleName(positionals, 'user name')
  const password = await readPassword(terminal, true)
  return editDirectory(
    {
      order: values,
      act: { event: 'user.password_set', user: username },
      work: async ({ users }) => {
        await users.setPassword(username, password)
        terminal.stdout.write(`${username}: password changed, and logged out everywhere\n`)
      },
    },
    terminal,
  )
}

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  add: {
    usage: 'add USERNAME …',
    summary: 'Add a user. The password is typed or piped in',
    options: [
      '--customer ID           a customer client through which the user may log in; may be repeated',
      '--access BUSINESS=ROLE  the role of the user at a business; may be repeated',
      '--claim NAME=VALUE      such as email=a@example.com or address.locality=Sydney; may be repeated',
      '--subject SUBJECT       the claim sub of a user from another system. Default: a new random one',
    ],
    run: add,
  },
  list: {
    usage: 'list [--json]',
    summary: 'List the users of the configuration and of the store',
    run: list,
  },
  disable: {
    usage: 'disable USERNAME',
    summary: 'Refuse all logins, and end tokens and sessions, in every process within a second',
    run: onState('disable', 'disabled, and logged out everywhere'),
  },
  remove: {
    usage: 'remove USERNAME',
    summary: 'Remove the user, and end tokens, sessions and consents',
    run: onState('remove', 'removed, and what the user held has ended'),
  },
  enable: {
    usage: 'enable USERNAME',
    summary: 'Allow logins again. What was ended stays ended',
    run: onState('enable', 'enabled'),
  },
  'set-password': {
    usage: 'set-password USERNAME',
    summary: 'Change the password, typed or piped in. The user must log in again everywhere',
    run: setPassword,
  },
}

const NOTES = `Users of the configuration are listed, and changed only in the configuration. People whom directory.people finds
are neither listed nor changed: they live in another system.

${DIRECTORY_ORDER_NOTES}`

/** `postern user …`: manages the users in the store. */
export const userCommand = commandOf('user', SUBCOMMANDS, NOTES)
