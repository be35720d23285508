/** Users whose logins are delayed after failures (C6.3.5): listed, and let in again. */
import {
  type AuditedChange,
  type Operator,
  recordGiving,
} from '../../base/contracts/records/audited-change.ts'
import type { LockoutFilter } from '../../base/contracts/people/lockouts.ts'
import { durationText } from '../../base/kernel/units.ts'
import type { ServiceContext } from '../operation/context.ts'
import {
  commandLine,
  count,
  members,
  ok,
  type AdminOperation,
  reject,
  textSchema,
  WHO,
  listSchema,
} from '../operation/operation.ts'
import { UsageError } from '../operation/verb.ts'

const lockoutSchema = members(
  {
    user: textSchema('As typed.'),
    client: textSchema(
      'The client id. Absent, as `network` is, where an account is guessed at from many networks.',
    ),
    network: textSchema('An address, or the site of an IPv6 address.'),
    failures: count('Since the last right password, or since they were forgotten.'),
    delay: count('Milliseconds that the next attempt waits, from the last failure on.'),
    at: textSchema('Of the last failure.'),
  },
  ['user', 'failures', 'delay', 'at'],
)

/** A lockout as it is answered. */
interface Lockout {
  readonly user: string
  readonly client?: string
  readonly network?: string
  readonly failures: number
  /** How long the login is delayed, in milliseconds. */
  readonly delay: number
}

const lockoutLine = ({ user, client = 'any client', network, failures, delay }: Lockout): string =>
  `${user}  ${client}  ${network ?? 'networks new to the user'}  ${failures} failures  waits ${durationText(delay)}\n`

const LIST: AdminOperation = {
  method: 'GET',
  path: '/lockouts',
  operationId: 'listLockouts',
  needs: 'operate',
  namesPeople: true,
  summary: 'Whose logins are slowed down by failures',
  answers: {
    200: ['Every one', members({ lockouts: listSchema(lockoutSchema, 'The latest first.') }, ['lockouts'])],
  },
  handle: ({ lockouts }) =>
    ok({ lockouts: lockouts.list().map((each) => ({ ...each, at: new Date(each.at).toISOString() })) }),
  commands: [
    commandLine({
      words: ['lockouts', 'lockouts list'],
      summary: 'List users whose logins are delayed after failures',
      arguments: [],
      options: {},
      examples: [{ line: 'postern lockouts', does: 'list them all' }],
      text: ({ lockouts }: { readonly lockouts: readonly Lockout[] }) =>
        lockouts.length === 0 ? 'no delayed logins\n' : lockouts.map(lockoutLine).join(''),
    }),
  ],
}

/** A user name as typed, and networks, are personal. */
const clearingOf = ({ user, client, network }: LockoutFilter): AuditedChange => ({
  event: 'lockout.cleared',
  on: { kind: 'lockout', client },
  personal: { 'on.user': user, 'on.network': network },
})

/** Forgets the failed logins that match every given member. Resolves with their number. */
async function clear(
  { lockouts, audit, recorder }: ServiceContext,
  which: LockoutFilter,
  operator: Operator,
): Promise<number> {
  const cleared = await recordGiving(
    audit,
    operator,
    clearingOf(which),
    () => lockouts.clear(which),
    (count) => ({ cleared: count }),
  )
  recorder.note('info', 'lockouts_cleared', { which, cleared, ...operator })
  return cleared
}

const CLEAR: AdminOperation = {
  method: 'DELETE',
  path: '/lockouts',
  operationId: 'clearLockouts',
  needs: 'operate',
  summary:
    'Forget failed logins: of a user, a client, a network, or of what all that are given have in common',
  query: {
    user: textSchema('As typed.'),
    client: textSchema('The client id.'),
    network: textSchema('An address.'),
    ...WHO,
  },
  answers: { 200: ['Forgotten', members({ cleared: count('How many.') }, ['cleared'])] },
  handle: async (service, { query: { user, client, network }, operator }) => {
    if (user === undefined && client === undefined && network === undefined)
      return reject(['expected `user`, `client` or `network`'])
    const which = {
      ...(user !== undefined && { user }),
      ...(client !== undefined && { client }),
      ...(network !== undefined && { network }),
    }
    return ok({ cleared: await clear(service, which, operator) })
  },
  commands: [
    commandLine({
      words: ['lockouts clear'],
      summary: 'End the delay of a user, a client or a network',
      notes: ['With several of --user, --client and --network, only where all of them match.'],
      arguments: [],
      options: {
        user: { type: 'string', value: 'NAME', help: 'The name that was typed' },
        client: { type: 'string', value: 'ID', help: 'The client through which it was typed' },
        network: { type: 'string', value: 'NETWORK', help: 'The network it came from, as `list` shows it' },
      },
      examples: [{ line: 'postern lockouts clear --user alice', does: 'let alice log in at once' }],
      input: ({ values: { user, client, network } }) => {
        const query = { user, client, network }
        if (Object.values(query).every((value) => value === undefined))
          throw new UsageError('expected --user, --client or --network, to say which delays end')
        return { query }
      },
      text: ({ cleared }: { readonly cleared: number }) => `${cleared} cleared\n`,
    }),
  ],
}

export const LOCKOUT_OPERATIONS: readonly AdminOperation[] = [LIST, CLEAR]
