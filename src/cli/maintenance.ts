import { parseArgs } from 'node:util'
import { parseDuration } from '../kernel/units.ts'
import { callAdminApi, operatorName, type AdminCall } from './admin-commands.ts'
import { previewText } from './maintenance-preview-text.ts'
import { UsageError, type Terminal, type Command } from './command.ts'
import { checkedReason, SERVICE_ORDER, SERVICE_ORDER_HELP } from './order-options.ts'

const OPTIONS = {
  ...SERVICE_ORDER,
  service: { type: 'boolean' },
  identity: { type: 'boolean' },
  business: { type: 'string' },
  area: { type: 'string' },
  backend: { type: 'string' },
  message: { type: 'string' },
  'retry-after': { type: 'string' },
  from: { type: 'string' },
  until: { type: 'string' },
  id: { type: 'string' },
  'allow-client': { type: 'string', multiple: true },
  'allow-address': { type: 'string', multiple: true },
  json: { type: 'boolean' },
  preview: { type: 'boolean' },
} as const

const read = (args: readonly string[]) =>
  parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS })

type Values = ReturnType<typeof read>['values']

/**
 * The scope as the admin API writes it; the whole service if none is named.
 *
 * @throws UsageError if several are named
 */
function scopeOf({ service, identity, ...values }: Values): string {
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

/** `30m` counts from now. Any other text is a time that the service checks. */
function instantOf(text: string | undefined): string | undefined {
  if (text === undefined || !/^[0-9]+(s|m|h|d)$/.test(text)) return text
  return new Date(Date.now() + parseDuration(text)).toISOString()
}

function secondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[0-9]+$/.test(text)) return Number(text)
  try {
    return Math.ceil(parseDuration(text) / 1000)
  } catch {
    throw new UsageError(`--retry-after: expected seconds or a duration such as 10m, got "${text}"`)
  }
}

const setCall = (values: Values, terminal: Terminal): AdminCall => ({
  ...(values.preview === true
    ? ({ method: 'POST', path: '/maintenance/preview' } as const)
    : ({ method: 'PUT', path: '/maintenance' } as const)),
  body: {
    scope: scopeOf(values),
    from: instantOf(values.from),
    until: instantOf(values.until),
    message: values.message,
    retryAfter: secondsOf(values['retry-after']),
    clients: values['allow-client'],
    addresses: values['allow-address'],
    reason: checkedReason(values),
    by: operatorName(terminal),
  },
})

const CALLS: Readonly<Record<string, (values: Values, terminal: Terminal) => AdminCall>> = {
  on: (values, terminal) => {
    if (values.from !== undefined)
      throw new UsageError('`on` starts at once and has no --from; use `maintenance plan`')
    return setCall(values, terminal)
  },
  plan: (values, terminal) => {
    if (values.from === undefined) throw new UsageError('expected --from: when the maintenance starts')
    return setCall(values, terminal)
  },
  off: (values, terminal) => ({
    method: 'DELETE',
    path: '/maintenance',
    query: {
      ...(values.id === undefined ? { scope: scopeOf(values) } : { id: values.id }),
      reason: checkedReason(values),
      by: operatorName(terminal),
    },
  }),
  status: () => ({ method: 'GET', path: '/maintenance' }),
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

const SHOW: Readonly<
  Record<string, (answer: SwitchAnswer & { readonly switches: readonly SwitchAnswer[] }) => string>
> = {
  on: line,
  plan: line,
  off: ({ switches }) =>
    switches.length === 0 ? 'there was no maintenance to end\n' : `ended:\n${switches.map(line).join('')}`,
  status: ({ switches }) => (switches.length === 0 ? 'no maintenance\n' : switches.map(line).join('')),
}

/** `postern maintenance on|off|plan|status …` (C9.1). */
export const maintenanceCommand: Command = {
  help: `Usage: postern maintenance on|off|plan|status …

  on      Start maintenance now, until \`off\` or --until
  plan    Start maintenance at --from
  off     End maintenance: what is in force for the scope, or one entry by --id, also a planned one
  status  List what is in force and what is planned

  --business CODE, --area NAME, --backend NAME, --identity
                          The scope: what is closed. Default: the whole API
  --message TEXT          Text for clients
  --retry-after SECONDS   Retry-After for clients. Default: the time that is left
  --from, --until TIME    2026-02-01T20:00+10:00, or 30m from now
  --allow-client ID, --allow-address ADDRESS
                          Who may still call; may be repeated. In a sidecar with several issuers, a client is
                          NAME:CLIENT
  --preview               With on and plan: tell what would be closed, and whose calls of the last hour would have been
                          refused. Change nothing
  --json                  Print the answer of the admin API
${SERVICE_ORDER_HELP}
`,
  run(args, terminal) {
    const { values, positionals } = read(args)
    const [word, ...more] = positionals
    const callOf = word !== undefined && Object.hasOwn(CALLS, word) ? CALLS[word] : undefined
    const show = word === undefined ? undefined : SHOW[word]
    if (callOf === undefined || show === undefined || more.length > 0)
      throw new UsageError('expected one of on, off, plan, status')
    if (values.preview === true && !['on', 'plan'].includes(word ?? ''))
      throw new UsageError('--preview goes with on and plan')
    const text = values.preview === true ? previewText : show
    const print = values.json === true ? (answer: unknown) => `${JSON.stringify(answer, null, 2)}\n` : text
    return callAdminApi(callOf(values, terminal), values, terminal, print)
  },
}
