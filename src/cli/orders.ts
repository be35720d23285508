/** The commands that give an order to a running service: reload, revoke. */
import type { Terminal } from '../operator/terminal.ts'
import { countOf, countOfFamilies } from '../operator/text.ts'
import { UsageError } from '../operator/verb.ts'
import { type AdminCall, callAdminApi, operatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason } from './call-options.ts'
import { HOW, RELOAD, REVOKE, RULE } from './tables/orders.ts'
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
