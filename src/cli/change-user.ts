/** `postern user change`. */
import { parseArgs } from 'node:util'
import type { ChangesOf } from '../directory/planned-change.ts'
import { LESSENED } from '../settings/takes-away.ts'
import { changeRecord } from './change-record.ts'
import { singleName, type Subcommand, UsageError } from './command.ts'
import { claimsOf, pairs, type Tree, USER_ARGUMENTS, USER_OPTIONS } from './user-options.ts'

const notEmpty = (given: readonly string[]): readonly string[] => given.filter((value) => value !== '')

/** The claims with those that are given. An empty one is removed, and so is an address without members. */
function withClaims(before: Tree, given: Tree): Tree {
  const fresh = Object.entries(given).map(([name, value]) => {
    const old = before[name]
    return [
      name,
      typeof value === 'string' ? value : withClaims(typeof old === 'object' ? old : {}, value),
    ] as const
  })
  const all = Object.entries({ ...before, ...Object.fromEntries(fresh) })
  return Object.fromEntries(all.filter(([, value]) => Object.keys(value).length > 0))
}

export const changeUser: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: USER_ARGUMENTS,
  })
  const username = singleName(positionals, 'user name')
  const { customer, access, claim } = values
  if ([customer, access, claim].every((given) => given === undefined))
    throw new UsageError('expected --customer, --access or --claim, to say what changes')
  const roles = access && Object.fromEntries(pairs('access', notEmpty(access)))
  const claims = claimsOf(claim)
  const changes: ChangesOf = (before) => ({
    ...(customer && { customers: notEmpty(customer) }),
    ...(roles && { access: roles }),
    ...(claim && { claims: withClaims((before['claims'] ?? {}) as Tree, claims) }),
  })
  return changeRecord(
    {
      ...{ order: values, options: USER_OPTIONS, name: username, lessened: LESSENED.user },
      act: { event: 'user.changed', user: username },
      plan: ({ users }) => users.plan(username, changes),
      personal: ['claims'],
    },
    terminal,
  )
}
