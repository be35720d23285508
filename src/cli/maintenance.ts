/** `postern maintenance on|off|plan|status …` (C9.1). */
import { parseDuration } from '../kernel/units.ts'
import { isDuration } from '../operator/option-kinds.ts'
import type { Terminal } from '../operator/terminal.ts'
import { type Given, UsageError } from '../operator/verb.ts'
import { type AdminCall, callAdminApi, operatorName } from './admin-commands.ts'
import { checkedReason } from './call-options.ts'
import { previewText } from './maintenance-preview-text.ts'
import { MAINTENANCE, type OFF, type PLAN } from './tables/maintenance.ts'
import { commandOf } from './verbs.ts'

/** The values of `plan`, which are those of `on` and --from. */
type Closure = Given<typeof PLAN>['values']
type Scope = Pick<Given<typeof OFF>['values'], 'business' | 'area' | 'backend' | 'identity' | 'service'>

/**
 * The scope as the admin API writes it; the whole service if none is named.
 *
 * @throws UsageError if several are named
 */
function scopeOf({ service, identity, ...values }: Scope): string {
  const named = (['business', 'area', 'backend'] as const).flatMap((kind) =>
    values[kind] === undefined ? [] : [`${kind}/${values[kind]}`],
  )
  const all = [...(service === true ? ['service'] : []), ...(identity === true ? ['identity'] : []), ...named]
  if (all.length > 1)
    throw new UsageError(
      `expected one of --service, --identity, --business, --area, --backend, got ${all.join(', ')}`,
    )
  return all[0] ?? 'service'
}

/** `30m` counts from now. */
function instantOf(text: string | undefined): string | undefined {
  if (text === undefined || !isDuration(text)) return text
  return new Date(Date.now() + parseDuration(text)).toISOString()
}

function secondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  return isDuration(text) ? Math.ceil(parseDuration(text) / 1000) : Number(text)
}

const closureBody = (values: Closure, terminal: Terminal): NonNullable<AdminCall['body']> => ({
  scope: scopeOf(values),
  from: instantOf(values.from),
  until: instantOf(values.until),
  message: values.message,
  retryAfter: secondsOf(values['retry-after']),
  clients: values['allow-client'],
  addresses: values['allow-address'],
  reason: checkedReason(values),
  by: operatorName(terminal),
})

function close({ values }: { readonly values: Closure }, terminal: Terminal): Promise<number> {
  const body = closureBody(values, terminal)
  if (values.preview !== true)
    return callAdminApi({ method: 'PUT', path: '/maintenance', body }, values, terminal, line)
  return callAdminApi({ method: 'POST', path: '/maintenance/preview', body }, values, terminal, previewText)
}

interface SwitchAnswer {
  readonly id: string
  readonly scope: string
  readonly state: string
  readonly source: string
  readonly from?: string
  readonly until?: string
  readonly message?: string
  readonly reason?: string
  readonly by?: string
}

function line({ id, scope, state, source, from, until, message, reason, by }: SwitchAnswer): string {
  const parts = [
    state,
    scope,
    from !== undefined && `from ${from}`,
    until !== undefined && `until ${until}`,
    message !== undefined && JSON.stringify(message),
    by !== undefined && `by ${by}`,
    reason !== undefined && `(${reason})`,
    source === 'configuration' ? 'in the configuration' : `id ${id}`,
  ]
  return `${parts.filter((part) => part !== false).join('  ')}\n`
}

interface Switches {
  readonly switches: readonly SwitchAnswer[]
}

const endedText = ({ switches }: Switches): string =>
  switches.length === 0 ? 'there was no maintenance to end\n' : `ended:\n${switches.map(line).join('')}`

const listText = ({ switches }: Switches): string =>
  switches.length === 0 ? 'no maintenance\n' : switches.map(line).join('')

export const maintenanceCommand = commandOf(MAINTENANCE, {
  on: close,
  plan: (given, terminal) => {
    if (given.values.from === undefined) throw new UsageError('expected --from: when the maintenance starts')
    return close(given, terminal)
  },
  off: ({ values }, terminal) => {
    const which = values.id === undefined ? { scope: scopeOf(values) } : { id: values.id }
    const query = { ...which, reason: checkedReason(values), by: operatorName(terminal) }
    return callAdminApi({ method: 'DELETE', path: '/maintenance', query }, values, terminal, endedText)
  },
  status: ({ values }, terminal) =>
    callAdminApi({ method: 'GET', path: '/maintenance' }, values, terminal, listText),
})
