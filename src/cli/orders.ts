/** The commands that give an order to a running service: reload, restart, lockouts, revoke. */
import { parseArgs } from 'node:util'
import { callAdminApi, operatorName } from './admin-commands.ts'
import { type Command, countOf, UsageError } from './command.ts'
import { checkedReason, SERVICE_ORDER, SERVICE_ORDER_HELP } from './order-options.ts'
import { countOfFamilies } from './terminal.ts'

interface Reloaded {
  readonly warnings: readonly string[]
  readonly revoked: number
}

/** `postern reload`: the service reads its configuration again. If it refuses it, its problems are shown: exit code 1. */
export const reloadCommand: Command = {
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: SERVICE_ORDER })
    const body = { by: operatorName(terminal), reason: checkedReason(values) }
    return callAdminApi(
      { method: 'POST', path: '/reload', body },
      values,
      terminal,
      ({ warnings, revoked }: Reloaded) =>
        `${warnings.map((each) => `${each}\n`).join('')}reloaded; ${revoked} revoked\n`,
    )
  },
}

/** `postern restart`: replaces the worker processes one by one. */
export const restartCommand: Command = {
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: SERVICE_ORDER })
    const body = { by: operatorName(terminal), reason: checkedReason(values) }
    return callAdminApi(
      { method: 'POST', path: '/restart', body },
      values,
      terminal,
      ({ workers }: { readonly workers: number }) => `${countOf(workers, 'worker')} replaced\n`,
    )
  },
}

interface Lockout {
  readonly user: string
  readonly client?: string
  readonly network?: string
  readonly failures: number
  readonly delay: number
}

const lockoutLine = ({ user, client = 'any client', network, failures, delay }: Lockout): string =>
  `${user}  ${client}  ${network ?? 'networks new to the user'}  ${failures} failures  waits ${delay} ms\n`

/** `postern lockouts [list|clear]`: users whose logins are delayed after failures (C6.3.5). */
export const lockoutsCommand: Command = {
  help: `Usage: postern lockouts [list|clear] …

  list   Users whose logins are delayed after failures
  clear  End the delay of --user, --client or --network. With several, only where all of them match

${SERVICE_ORDER_HELP}
`,
  run(args, terminal) {
    const text = { type: 'string' } as const
    const options = { ...SERVICE_ORDER, user: text, client: text, network: text }
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
    const { user, client, network } = values
    const which = { user, client, network }
    const [word = 'list', ...more] = positionals
    if (more.length > 0 || !['list', 'clear'].includes(word)) throw new UsageError('expected list or clear')
    if (word === 'list')
      return callAdminApi(
        { method: 'GET', path: '/lockouts' },
        values,
        terminal,
        ({ lockouts }: { readonly lockouts: readonly Lockout[] }) =>
          lockouts.length === 0 ? 'no delayed logins\n' : lockouts.map(lockoutLine).join(''),
      )
    if (Object.values(which).every((value) => value === undefined))
      throw new UsageError('expected --user, --client or --network, to say which delays end')
    const query = { ...which, reason: checkedReason(values), by: operatorName(terminal) }
    return callAdminApi(
      { method: 'DELETE', path: '/lockouts', query },
      values,
      terminal,
      ({ cleared }: { readonly cleared: number }) => `${cleared} cleared\n`,
    )
  },
}

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

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const RULE = { jti: text, family: text, subject: text, client: text, business: text }
const HOW = { issuer: text, preview: flag, consents: flag, force: flag }
const ORDERED = Object.keys({ ...RULE, ...HOW }) as (keyof typeof RULE | keyof typeof HOW)[]

/** `postern revoke`: what is held is ended, at once and for good (C6.3.3). */
export const revokeCommand: Command = {
  help: `Usage: postern revoke OPTIONS

  --jti ID            One access token
  --family ID         A family of refresh tokens, with its authorization code and its access tokens
  --subject SUBJECT   A user: sessions, families, codes and access tokens
  --client ID         A client: families, codes and access tokens
  --business CODE     A business: families, codes and access tokens
                      With several of --subject, --client and --business, only what matches all of them

  --issuer NAME       In a sidecar with several issuers: the issuer that the id is of, by its name or URL
  --consents          Consents too. Without it, they stay
  --preview           Show what would be revoked, and change nothing
  --force             Also if an id is not known. Without it, that is refused: exit code 1
${SERVICE_ORDER_HELP}
`,
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: { ...RULE, ...HOW, ...SERVICE_ORDER } })
    if (!Object.keys(RULE).some((name) => Object.hasOwn(values, name)))
      throw new UsageError(
        'expected one of --jti, --family, --subject, --client, --business, to say what is revoked',
      )
    const order = Object.fromEntries(ORDERED.map((name) => [name, values[name]]))
    const body = { ...order, reason: checkedReason(values), by: operatorName(terminal) }
    return callAdminApi({ method: 'POST', path: '/revoke', body }, values, terminal, revokedText)
  },
}
