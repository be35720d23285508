/** The admin API's other routes: reload, restart, revocation, lockouts, the configuration in force. */
import { count, members, ok, problemsSchema, refuse, reject, text, WHO, type AdminRoute } from './routes.ts'
import { REVOKE_ROUTE } from './revoke.ts'

const whoOnly = members(WHO)

const lockoutSchema = members(
  {
    user: text('As typed.'),
    client: text(
      'The client id. Absent, as `network` is, where an account is guessed at from many networks.',
    ),
    network: text('An address, or the site of an IPv6 address.'),
    failures: count('Since the last right password, or since they were forgotten.'),
    delay: count('Milliseconds that the next attempt waits, from the last failure on.'),
    at: text('Of the last failure.'),
  },
  ['user', 'failures', 'delay', 'at'],
)

export const ORDER_ROUTES: readonly AdminRoute[] = [
  {
    method: 'POST',
    path: '/reload',
    operationId: 'reload',
    summary:
      'Read the configuration anew: checked whole, then in force in every process at once, or not at all',
    body: whoOnly,
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
    handle: async (room, { operator }) => {
      const outcome = await room.reload(operator)
      return outcome.outcome === 'refused'
        ? refuse('the configuration was refused; nothing has changed', outcome.problems)
        : ok(outcome)
    },
  },
  {
    method: 'POST',
    path: '/restart',
    operationId: 'restart',
    summary: 'Replace every worker process, one after the other, without losing a call',
    body: whoOnly,
    bodyOptional: true,
    answers: {
      200: [
        'Replaced',
        members({ outcome: { const: 'restarted' }, workers: count('How many.') }, ['outcome', 'workers']),
      ],
      409: ['Not possible', problemsSchema],
    },
    handle: async (room, { operator }) => {
      const outcome = await room.restart(operator)
      return outcome.outcome === 'refused' ? refuse('not restarted', outcome.problems) : ok(outcome)
    },
  },
  REVOKE_ROUTE,
  {
    method: 'GET',
    path: '/lockouts',
    operationId: 'listLockouts',
    summary: 'Whose logins are slowed down by failures',
    answers: {
      200: [
        'Every one',
        members({ lockouts: { type: 'array', items: lockoutSchema, description: 'The latest first.' } }, [
          'lockouts',
        ]),
      ],
    },
    handle: ({ lockouts }) =>
      ok({ lockouts: lockouts.list().map((each) => ({ ...each, at: new Date(each.at).toISOString() })) }),
  },
  {
    method: 'DELETE',
    path: '/lockouts',
    operationId: 'clearLockouts',
    summary:
      'Forget failed logins: of a user, a client, a network, or of what all that are given have in common',
    query: {
      user: text('As typed.'),
      client: text('The client id.'),
      network: text('An address.'),
      ...WHO,
    },
    answers: { 200: ['Forgotten', members({ cleared: count('How many.') }, ['cleared'])] },
    handle: async (room, { query: { user, client, network }, operator }) => {
      if (user === undefined && client === undefined && network === undefined)
        return reject(['expected `user`, `client` or `network`'])
      const which = {
        ...(user !== undefined && { user }),
        ...(client !== undefined && { client }),
        ...(network !== undefined && { network }),
      }
      return ok({ cleared: await room.clearLockouts(which, operator) })
    },
  },
  {
    method: 'GET',
    path: '/configuration',
    operationId: 'showConfiguration',
    summary:
      'The configuration in force: extended, with defaults and what the environment sets, without secrets',
    answers: { 200: ['As it is in force', { type: 'object' }] },
    handle: (room) => ok(room.configuration()),
  },
]
