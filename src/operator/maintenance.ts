/** The admin API's routes for maintenance (C9.1). */
import type { Clock } from '../kernel/clock.ts'
import {
  type AdminRequest,
  type Operation,
  members,
  type Members,
  ok,
  refuse,
  reject,
  type Schema,
  text,
  WHO,
} from './operation.ts'
import type { OperatorControl } from './operator-control.ts'
import { PREVIEW_SCHEMA, previewBody } from './maintenance-preview.ts'
import type { KeptSwitch } from '../maintenance/records.ts'
import { INSTANT_PATTERN, instantText } from '../kernel/units.ts'
import { switchProblems, type SwitchProblem } from '../maintenance/schema.ts'
import {
  isInForce,
  parseScope,
  SCOPE_PATTERN,
  scopeText,
  type MaintenanceSwitch,
} from '../maintenance/maintenance.ts'

const scope = text('`service`, `identity`, `business/CODE`, `area/NAME` or `backend/NAME`.', {
  pattern: SCOPE_PATTERN,
})
const instant = (description: string): Schema => text(description, { pattern: INSTANT_PATTERN })

const SETTABLE: Members = {
  scope,
  from: instant('Closed from this moment on (RFC 3339 with its zone); at once if not given.'),
  until: instant('Open again from this moment on; until somebody says so, if not given.'),
  message: text('Told to clients in place of the fixed text.'),
  retryAfter: {
    type: 'integer',
    minimum: 1,
    maximum: 31_536_000,
    description: 'Seconds, told to clients. If not given: what is left of the window, else 120.',
  },
  addresses: {
    type: 'array',
    items: text('An address or a CIDR network.'),
    maxItems: 1000,
    description: 'Who passes all the same.',
  },
  clients: {
    type: 'array',
    items: text('A client id; with several issuers `NAME:CLIENT`.'),
    maxItems: 1000,
    description: 'Clients that pass all the same, if their token verifies.',
  },
}

const switchSchema = members(
  {
    ...SETTABLE,
    ...WHO,
    id: text('Its name.'),
    state: { enum: ['on', 'planned'], description: 'Whether it is in force now.' },
    source: { enum: ['operator', 'configuration'], description: 'Where it is set, and can be changed.' },
    setAt: instant('When it was set.'),
  },
  ['id', 'scope', 'state', 'source'],
)

const listSchema = members(
  { switches: { type: 'array', items: switchSchema, description: 'In force and planned.' } },
  ['switches'],
)

/** A switch as the API shows it. */
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
  const closed = parseScope(sent.scope)
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

const lines = (problems: ReturnType<typeof switchProblems>): string[] =>
  problems.map(
    ({ member, message, hint }) => `${member}  ${message}${hint === undefined ? '' : ` — ${hint}`}`,
  )

/** Drops problems about clients that are unknown to the configuration but stand in the store (C9.2). */
async function withoutStored(
  problems: readonly SwitchProblem[],
  control: Pick<OperatorControl, 'hasStored'>,
): Promise<SwitchProblem[]> {
  const left: SwitchProblem[] = []
  for (const problem of problems) if (!(await control.hasStored(problem))) left.push(problem)
  return left
}

/** The switch that a body describes; without one, the problems. */
async function checkSwitch(
  body: AdminRequest['body'],
  control: Pick<OperatorControl, 'closableNames' | 'hasStored'>,
  clock: Clock,
): Promise<{ readonly entry?: MaintenanceSwitch; readonly problems: readonly string[] }> {
  const entry = readSwitch(body as unknown as SwitchBody)
  if (entry === undefined) return { problems: ['scope  names nothing that can be closed'] }
  const problems = await withoutStored(switchProblems(entry, control.closableNames()), control)
  if (entry.until !== undefined && entry.until <= clock.now())
    problems.push({ member: 'until', message: 'is over already' })
  return problems.length > 0 ? { problems: lines(problems) } : { entry, problems: [] }
}

const endSwitches =
  (clock: Clock): Operation['handle'] =>
  async ({ maintenance }, { query, operator }) => {
    const now = clock.now()
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
      return refuse('set in the configuration', [
        `${configured.map(({ id }) => id).join(', ')}: take it out of \`maintenance\` there and reload`,
      ])
    await maintenance.end(meant, operator)
    return ok({ switches: meant.map((entry) => describeSwitch(entry, now)) })
  }

export const maintenanceRoutes = (clock: Clock): readonly Operation[] => [
  {
    method: 'GET',
    path: '/maintenance',
    operationId: 'listMaintenance',
    needs: 'view',
    summary: 'What is switched off, and what is planned',
    answers: { 200: ['Every switch', listSchema] },
    handle: ({ maintenance }) =>
      ok({ switches: maintenance.list().map((entry) => describeSwitch(entry, clock.now())) }),
  },
  {
    method: 'PUT',
    path: '/maintenance',
    operationId: 'setMaintenance',
    needs: 'operate',
    summary: 'Switch something off, now or in a window; what was on for that scope is replaced, plans stay',
    body: members({ ...SETTABLE, ...WHO }, ['scope']),
    answers: { 200: ['In force (or planned) in this process; everywhere within a second', switchSchema] },
    handle: async (control, { body, operator }) => {
      const { entry, problems } = await checkSwitch(body, control, clock)
      if (entry === undefined) return reject(problems)
      return ok(describeSwitch(await control.maintenance.set(entry, operator), clock.now()))
    },
  },
  {
    method: 'POST',
    path: '/maintenance/preview',
    operationId: 'previewMaintenance',
    needs: 'operate',
    summary:
      'What a switch would close, and whose calls of the last hour it would have refused; changes nothing',
    body: members({ ...SETTABLE, ...WHO }, ['scope']),
    answers: { 200: ['What it would close', PREVIEW_SCHEMA] },
    handle: async (control, { body }) => {
      const { entry, problems } = await checkSwitch(body, control, clock)
      return entry === undefined ? reject(problems) : ok(previewBody(await control.previewSwitch(entry)))
    },
  },
  {
    method: 'DELETE',
    path: '/maintenance',
    operationId: 'endMaintenance',
    needs: 'operate',
    summary: 'Switch on again: what is in force for a scope, or one switch by its id, planned ones too',
    query: { scope, id: text('Of the switch.'), ...WHO },
    answers: {
      200: ['What was ended', listSchema],
      409: ['It is set in the configuration', members({ error: text('Why.'), problems: { type: 'array' } })],
    },
    handle: endSwitches(clock),
  },
]
