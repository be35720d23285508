/** The commands that give an order to a running service: reload, restart, lockouts, revoke. */
import { durationText } from '../kernel/units.ts'
import { countOf, countOfFamilies } from '../operator/text.ts'
import { type Given, UsageError } from '../operator/verb.ts'
import { type AdminCall, callAdminApi, operatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason } from './call-options.ts'
import type { Terminal } from './command.ts'
import { HOW, LOCKOUTS, RELOAD, RESTART, REVOKE, RULE } from './tables/orders.ts'
import { commandOf } from './verbs.ts'

const orderCall = (path: string, values: CallOptions, terminal: Terminal): AdminCall => ({
  ...{ method: 'POST', path },
  body: { by: operatorName(terminal), reason: checkedReason(values) },
})

interface Reloaded {
  readonly warnings: readonly string[]
  readonly revoked: number
}

const reloadedText = ({ warnings, revoked }: Reloaded): string =>
  `${warnings.map((each) => `${each}\n`).join('')}reloaded; ${revoked} revoked\n`

/** The service reads its configuration again. If it refuses it, its problems are shown: exit code 1. */
export const reload = ({ values }: { readonly values: CallOptions }, terminal: Terminal): Promise<number> =>
  callAdminApi(orderCall('/reload', values, terminal), values, terminal, reloadedText)

export const reloadCommand = commandOf(RELOAD, { '': reload })

const restartedText = ({ workers }: { readonly workers: number }): string =>
  `${countOf(workers, 'worker')} replaced\n`

/** `postern restart`: replaces the worker processes one by one. */
export const restartCommand = commandOf(RESTART, {
  '': ({ values }, terminal) =>
    callAdminApi(orderCall('/restart', values, terminal), values, terminal, restartedText),
})

interface Lockout {
  readonly user: string
  readonly client?: string
  readonly network?: string
  readonly failures: number
  /** Milliseconds. */
  readonly delay: number
}

const lockoutLine = ({ user, client = 'any client', network, failures, delay }: Lockout): string =>
  `${user}  ${client}  ${network ?? 'networks new to the user'}  ${failures} failures  waits ${durationText(delay)}\n`

const lockoutsText = ({ lockouts }: { readonly lockouts: readonly Lockout[] }): string =>
  lockouts.length === 0 ? 'no delayed logins\n' : lockouts.map(lockoutLine).join('')

function listLockouts({ values }: { readonly values: CallOptions }, terminal: Terminal): Promise<number> {
  return callAdminApi({ method: 'GET', path: '/lockouts' }, values, terminal, lockoutsText)
}

const clearedText = ({ cleared }: { readonly cleared: number }): string => `${cleared} cleared\n`

function clearLockouts({ values }: Given<typeof LOCKOUTS.verbs.clear>, terminal: Terminal): Promise<number> {
  const { user, client, network } = values
  const which = { user, client, network }
  if (Object.values(which).every((value) => value === undefined))
    throw new UsageError('expected --user, --client or --network, to say which delays end')
  const query = { ...which, reason: checkedReason(values), by: operatorName(terminal) }
  return callAdminApi({ method: 'DELETE', path: '/lockouts', query }, values, terminal, clearedText)
}

/** `postern lockouts [list|clear]`: users whose logins are delayed after failures (C6.3.5). */
export const lockoutsCommand = commandOf(LOCKOUTS, {
  '': listLockouts,
  list: listLockouts,
  clear: clearLockouts,
})

interface Revoked {
  readonly outcome: 'revoked' | 'previewed'
  readonly sessions: number
  readonly families: number
  readonly codes: number
  readonly consents: number
}

function revokedText({ outcome, sessions, families, codes, consents }: Revoked): string {
  const list = [
    countOf(sessions, 'session'),
    countOfFamilies(families),
    countOf(codes, 'code'),
    countOf(consents, 'consent'),
  ].join(', ')
  return outcome === 'revoked'
    ? `revoked: ${list}, and the access tokens\n`
    : `would be revoked: ${list}, and the access tokens. Nothing was changed.\n`
}

const RULES = Object.keys(RULE) as (keyof typeof RULE)[]
const ORDERED = [...RULES, ...(Object.keys(HOW) as (keyof typeof HOW)[])]

/** `postern revoke`: what is held is ended, at once and for good (C6.3.3). */
export const revokeCommand = commandOf(REVOKE, {
  '': ({ values }, terminal) => {
    if (RULES.every((name) => values[name] === undefined))
      throw new UsageError(
        `expected one of ${RULES.map((name) => `--${name}`).join(', ')}, to say what is revoked`,
      )
    if (values.before !== undefined && values.before !== 'now')
      throw new UsageError(`--before: expected now, got "${values.before}"`)
    const order = Object.fromEntries(ORDERED.map((name) => [name, values[name]]))
    const body = { ...order, reason: checkedReason(values), by: operatorName(terminal) }
    return callAdminApi({ method: 'POST', path: '/revoke', body }, values, terminal, revokedText)
  },
})
