import { parseArgs } from 'node:util'
import { type Subcommand, singleName, commandOf } from './command.ts'
import { randomUUID } from 'node:crypto'
import { plainFacts } from '../operations/acts.ts'
import { editDirectory } from './edit-directory.ts'
import { DIRECTORY_ORDER_NOTES, ORDER } from './order-options.ts'
import { printJson, printRows, readPassword } from './terminal.ts'
import { changeUser } from './change-user.ts'
import { claimsOf, pairs, USER_ARGUMENTS, USER_OPTIONS } from './user-options.ts'

const add: Subcommand['run'] = async (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...USER_ARGUMENTS, subject: { type: 'string' } },
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
      options: USER_OPTIONS,
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
  const { values } = parseArgs({ args: [...args], options: { ...ORDER, json: { type: 'boolean' } } })
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
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: ORDER })
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
  const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: ORDER })
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
  change: {
    usage: 'change USERNAME …',
    summary:
      'Change what is given of a user in the store; the rest stays. What goes beyond what is left ends',
    options: [
      '--customer ID           replace all customer clients; may be repeated; an empty ID leaves none',
      '--access BUSINESS=ROLE  replace all roles; may be repeated; an empty text leaves none',
      '--claim NAME=VALUE      change this claim only; may be repeated; NAME= removes it',
    ],
    run: changeUser,
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
