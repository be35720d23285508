/** Maintenance (C9.1): what is closed, now or in a window, and opened again. */
import { INSTANT_PATTERN, instantText, parseDuration } from '../../base/kernel/units.ts'
import type { KeptSwitch } from '../../gateway/maintenance/records.ts'
import type { SwitchProblem } from '../../gateway/maintenance/schema.ts'
import {
  isInForce,
  type MaintenanceSwitch,
  parseClosureScope,
  SCOPE_PATTERN,
  scopeText,
} from '../../gateway/maintenance/switch.ts'
import type { ServiceContext } from '../operation/context.ts'
import { PREVIEW_SCHEMA, previewBody, previewText } from './maintenance-preview.ts'
import {
  type AdminRequest,
  commandLine,
  members,
  type Members,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  reject,
  type Schema,
  type CommandSession,
  textSchema,
  WHO,
  listSchema,
} from '../operation/operation.ts'
import { EXIT, isDuration, type Options, UsageError, type Values } from '../operation/verb.ts'

const scope = textSchema('`service`, `identity`, `business/CODE`, `area/NAME` or `backend/NAME`.', {
  pattern: SCOPE_PATTERN,
})
const instant = (description: string): Schema => textSchema(description, { pattern: INSTANT_PATTERN })

const SETTABLE: Members = {
  scope,
  from: instant('Closed from this moment on (RFC 3339 with its zone); at once if not given.'),
  until: instant('Open again from this moment on; until somebody says so, if not given.'),
  message: textSchema('Told to clients in place of the fixed text.'),
  retryAfter: {
    type: 'integer',
    minimum: 1,
    maximum: 31_536_000,
    description: 'Seconds, told to clients. If not given: what is left of the window, else 120.',
  },
  addresses: {
    type: 'array',
    items: textSchema('An address or a CIDR network.'),
    maxItems: 1000,
    description: 'Who passes all the same.',
  },
  clients: {
    type: 'array',
    items: textSchema('A client id; with several issuers `NAME:CLIENT`.'),
    maxItems: 1000,
    description: 'Clients that pass all the same, if their token verifies.',
  },
}

const switchSchema = members(
  {
    ...SETTABLE,
    ...WHO,
    id: textSchema('Its name.'),
    state: { enum: ['on', 'planned'], description: 'Whether it is in force now.' },
    source: { enum: ['operator', 'configuration'], description: 'Where it is set, and can be changed.' },
    setAt: instant('When it was set.'),
  },
  ['id', 'scope', 'state', 'source'],
)

const switchesSchema = members({ switches: listSchema(switchSchema, 'In force and planned.') }, ['switches'])

/** A switch as it is answered. */
const describeSwitch = ({ scope: closed, from, until, setAt, ...rest }: KeptSwitch, now: number) => ({
  ...rest,
  scope: scopeText(closed),
  state: isInForce({ scope: closed, from, until }, now) ? 'on' : 'planned',
  from: instantText(from),
  until: instantText(until),
  setAt: instantText(setAt),
})

interface SwitchBody {
  readonly scope: string
  readonly from?: string
  readonly until?: string
  readonly message?: string
  readonly retryAfter?: number
  readonly addresses?: readonly string[]
  readonly clients?: readonly string[]
}

function readSwitch({
  from,
  until,
  message,
  retryAfter,
  ...sent
}: SwitchBody): MaintenanceSwitch | undefined {
  const closed = parseClosureScope(sent.scope)
  return (
    closed && {
      scope: closed,
      from: from === undefined ? undefined : Date.parse(from),
      until: until === undefined ? undefined : Date.parse(until),
      message,
      retryAfter,
      addresses: sent.addresses ?? [],
      clients: sent.clients ?? [],
    }
  )
}

const lines = (problems: readonly SwitchProblem[]): string[] =>
  problems.map(
    ({ member, message, hint }) => `${member}  ${message}${hint === undefined ? '' : ` — ${hint}`}`,
  )

/** The switch that a body describes; without one, the problems. */
async function checkSwitch(
  body: AdminRequest['body'],
  service: ServiceContext,
): Promise<{ readonly entry?: MaintenanceSwitch; readonly problems: readonly string[] }> {
  const entry = readSwitch(body as unknown as SwitchBody)
  if (entry === undefined) return { problems: ['scope  names nothing that can be closed'] }
  const { problemsOf } = await import('./closable.ts')
  const problems = await problemsOf(entry, service)
  if (entry.until !== undefined && entry.until <= service.maintenance.now())
    problems.push({ member: 'until', message: 'is over already' })
  return problems.length > 0 ? { problems: lines(problems) } : { entry, problems: [] }
}

/** The options for what is closed. The whole API, if none of them is given. */
const SCOPE_OPTIONS = {
  business: { type: 'string', value: 'CODE', help: 'Calls for this business' },
  area: { type: 'string', value: 'NAME', help: 'The actions of this area' },
  backend: { type: 'string', value: 'NAME', help: 'The actions that this backend answers' },
  identity: { type: 'boolean', help: 'Logins and tokens' },
  service: { type: 'boolean', help: 'The whole API. This is the default' },
} as const satisfies Options

const FROM = {
  from: { type: 'string', kind: 'time', help: 'When it closes. Required' },
} as const satisfies Options

const CLOSURE_OPTIONS = {
  ...SCOPE_OPTIONS,
  message: { type: 'string', help: 'A text for clients, in place of the fixed one' },
  'retry-after': {
    type: 'string',
    kind: 'wait',
    help: 'What clients are told to wait. Default: the time that is left, else 2m',
  },
  until: { type: 'string', kind: 'time', help: 'When it opens again. Default: when `off` says so' },
  'allow-client': {
    type: 'string',
    value: 'ID',
    multiple: true,
    help: 'A client that may still call. In a sidecar with several issuers NAME:CLIENT',
  },
  'allow-address': {
    type: 'string',
    value: 'ADDRESS',
    multiple: true,
    help: 'An address or a CIDR network that may still call',
  },
  preview: {
    type: 'boolean',
    help: 'Tell what would be closed, and whose calls of the last hour would have been refused. Change nothing',
  },
} as const satisfies Options

/**
 * The scope as the admin API writes it; the whole service if none is named.
 *
 * @throws UsageError if several are named
 */
function typedScope({ service, identity, ...values }: Values<typeof SCOPE_OPTIONS>): string {
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
function instantOf(typed: string | undefined): string | undefined {
  if (typed === undefined || !isDuration(typed)) return typed
  return new Date(Date.now() + parseDuration(typed)).toISOString()
}

function secondsOf(typed: string | undefined): number | undefined {
  if (typed === undefined) return undefined
  return isDuration(typed) ? Math.ceil(parseDuration(typed) / 1000) : Number(typed)
}

/** Closes what was typed, or shows what that would close. */
async function close({
  values,
  send,
  show,
}: CommandSession<typeof CLOSURE_OPTIONS & typeof FROM>): Promise<number> {
  const body = {
    scope: typedScope(values),
    from: instantOf(values.from),
    until: instantOf(values.until),
    message: values.message,
    retryAfter: secondsOf(values['retry-after']),
    clients: values['allow-client'],
    addresses: values['allow-address'],
  }
  if (values.preview === true)
    show(await send<ReturnType<typeof previewBody>>(PREVIEW, { body }), previewText)
  else show(await send<SwitchAnswer>(SET, { body }), switchLine)
  return EXIT.done
}

type SwitchAnswer = ReturnType<typeof describeSwitch>

function switchLine(answer: SwitchAnswer): string {
  const { id, state, source, from, until, message, reason, by } = answer
  const parts = [
    state,
    answer.scope,
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

const LIST: AdminOperation = {
  method: 'GET',
  path: '/maintenance',
  operationId: 'listMaintenance',
  needs: 'view',
  summary: 'What is switched off, and what is planned',
  answers: { 200: ['Every switch', switchesSchema] },
  handle: ({ maintenance }) =>
    ok({ switches: maintenance.list().map((entry) => describeSwitch(entry, maintenance.now())) }),
  commands: [
    commandLine({
      words: ['maintenance status'],
      summary: 'List what is closed and what is planned',
      arguments: [],
      options: {},
      examples: [{ line: 'postern maintenance status --json', does: 'list it for a program' }],
      text: ({ switches }: Switches) =>
        switches.length === 0 ? 'no maintenance\n' : switches.map(switchLine).join(''),
    }),
  ],
}

const SET: AdminOperation = {
  method: 'PUT',
  path: '/maintenance',
  operationId: 'setMaintenance',
  needs: 'operate',
  summary: 'Switch something off, now or in a window; what was on for that scope is replaced, plans stay',
  body: members({ ...SETTABLE, ...WHO }, ['scope']),
  answers: { 200: ['In force (or planned) in this process; everywhere within a second', switchSchema] },
  handle: async (service, { body, operator }) => {
    const { maintenance } = service
    const { entry, problems } = await checkSwitch(body, service)
    if (entry === undefined) return reject(problems)
    return ok(describeSwitch(await maintenance.set(entry, operator), maintenance.now()))
  },
  commands: [
    commandLine({
      words: ['maintenance on'],
      summary: 'Close the service, or a part of it, now',
      arguments: [],
      options: CLOSURE_OPTIONS,
      examples: [
        {
          line: "postern maintenance on --business ACME --until 30m --message 'Back at six'",
          does: 'close one business for half an hour',
        },
        {
          line: 'postern maintenance on --preview',
          does: 'show whose calls closing everything would refuse; nothing is closed',
        },
      ],
      run: (session) => close(session),
    }),
    commandLine({
      words: ['maintenance plan'],
      summary: 'Close the service, or a part of it, from --from on',
      arguments: [],
      options: { ...FROM, ...CLOSURE_OPTIONS },
      examples: [
        {
          line: 'postern maintenance plan --area member-data --from 2030-02-01T20:00+10:00 --until 2030-02-01T22:00+10:00',
          does: 'close an area for two hours of an evening',
        },
      ],
      run: (session) => {
        if (session.values.from === undefined)
          throw new UsageError('expected --from: when the maintenance starts')
        return close(session)
      },
    }),
  ],
}

const PREVIEW: AdminOperation = {
  method: 'POST',
  path: '/maintenance/preview',
  operationId: 'previewMaintenance',
  needs: 'operate',
  summary:
    'What a switch would close, and whose calls of the last hour it would have refused; changes nothing',
  body: members({ ...SETTABLE, ...WHO }, ['scope']),
  answers: { 200: ['What it would close', PREVIEW_SCHEMA] },
  handle: async (service, { body }) => {
    const { entry, problems } = await checkSwitch(body, service)
    if (entry === undefined) return reject(problems)
    const { previewOf } = await import('./closable.ts')
    return ok(previewBody(await previewOf(entry, service)))
  },
}

const END: AdminOperation = {
  method: 'DELETE',
  path: '/maintenance',
  operationId: 'endMaintenance',
  needs: 'operate',
  summary: 'Switch on again: what is in force for a scope, or one switch by its id, planned ones too',
  query: { scope, id: textSchema('Of the switch.'), ...WHO },
  answers: {
    200: ['What was ended', switchesSchema],
    409: ['It is set in the configuration', problemsSchema],
  },
  handle: async ({ maintenance }, { query, operator }) => {
    const now = maintenance.now()
    if ((query['id'] === undefined) === (query['scope'] === undefined))
      return reject(['expected `scope` or `id`, one of both'])
    const meant = maintenance
      .list()
      .filter((entry) =>
        query['id'] === undefined
          ? scopeText(entry.scope) === query['scope'] && isInForce(entry, now)
          : entry.id === query['id'],
      )
    const configured = meant.filter(({ source }) => source === 'configuration')
    if (configured.length > 0)
      return conflict('set in the configuration', [
        `${configured.map(({ id }) => id).join(', ')}: take it out of \`maintenance\` there and reload`,
      ])
    await maintenance.end(meant, operator)
    return ok({ switches: meant.map((entry) => describeSwitch(entry, now)) })
  },
  commands: [
    commandLine({
      words: ['maintenance off'],
      summary: 'Open again what is closed, or cancel what is planned',
      arguments: [],
      options: {
        ...SCOPE_OPTIONS,
        id: {
          type: 'string',
          value: 'ID',
          help: 'One entry, also a planned one, by the id that `status` shows',
        },
      },
      examples: [{ line: 'postern maintenance off --business ACME', does: 'open this business again' }],
      input: ({ values }) => ({
        query: values.id === undefined ? { scope: typedScope(values) } : { id: values.id },
      }),
      text: ({ switches }: Switches) =>
        switches.length === 0
          ? 'there was no maintenance to end\n'
          : `ended:\n${switches.map(switchLine).join('')}`,
    }),
  ],
}

export const MAINTENANCE_OPERATIONS: readonly AdminOperation[] = [LIST, SET, PREVIEW, END]
