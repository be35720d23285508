/** What a maintenance switch would close, and whom it would meet (C11.5.6). Changes nothing. */
import { type ClosureScope, type MaintenanceSwitch, scopeText } from './switch.ts'
import type { CallCount } from '../../base/contracts/processes/reports.ts'

export interface Closable {
  readonly actions: readonly {
    readonly area: string
    readonly action: string
    readonly level: string
    readonly backend: string
    readonly methods: readonly string[]
  }[]
  /** Undefined if they are not known without reading large files. */
  readonly businesses: readonly string[] | undefined
}

interface History {
  /** Since when calls are counted, in milliseconds since the epoch. */
  readonly since: number
  readonly counts: Iterable<CallCount>
  readonly websockets: Readonly<Record<string, number>>
}

/** The most names that an answer lists. Their number is always complete. */
export const MOST_LISTED = 200
/** The most clients that an answer names: those with most calls. */
export const MOST_CLIENTS = 20

export interface Names {
  readonly count: number
  /** The first MOST_LISTED names. */
  readonly names: readonly string[]
}

export interface MaintenancePreview {
  readonly scope: string
  readonly closes: {
    /** Absent where they are not known. */
    readonly businesses?: Names
    readonly areas: readonly string[]
    readonly backends: readonly string[]
    /** `GET,POST area/action` */
    readonly actions: Names
  }
  readonly calls: {
    readonly since: number
    /** Calls that came for what it closes. */
    readonly total: number
    /** How many of these calls it would have refused. */
    readonly refused: number
    /** Refused ones by client, most first. */
    readonly clients: readonly { readonly client: string; readonly calls: number }[]
    /** Refused ones of all other clients, and of callers who had not proved who they are. */
    readonly others: number
  }
  /** Open websockets behind it, which stay open; undefined where they are not counted apart. */
  readonly websockets: number | undefined
  readonly passes: { readonly clients: readonly string[]; readonly addresses: readonly string[] }
}

type Action = Closable['actions'][number]

/** Calls of users for themselves have no business. */
const hasBusiness = ({ level }: Action): boolean => level !== 'user'

const CLOSES: Readonly<Record<ClosureScope['kind'], (action: Action, name: string) => boolean>> = {
  service: () => true,
  identity: () => false,
  business: hasBusiness,
  area: ({ area }, name) => area === name,
  backend: ({ backend }, name) => backend === name,
}

const listed = (names: readonly string[]): Names => ({
  count: names.length,
  names: names.slice(0, MOST_LISTED),
})

const unique = (names: readonly string[]): readonly string[] => [...new Set(names)]

/** Whether a call that was counted came for what the switch closes. */
function meets(scope: ClosureScope, closed: readonly Action[]): (count: CallCount) => boolean {
  if (scope.kind === 'identity') return ({ place }) => place === 'identity'
  if (scope.kind === 'service') return ({ place }) => place !== 'identity'
  const places = new Set(closed.map(({ area }) => scopeText({ kind: 'area', name: area })))
  // These switches are asked after the token (C4.9): a caller who has not proved an identity was refused before.
  const wanted = scope.kind === 'business' ? scope.name : undefined
  return ({ client, business, place }) =>
    client !== '' && places.has(place) && (wanted === undefined || business === wanted)
}

const sum = (values: Iterable<number>): number => [...values].reduce((all, each) => all + each, 0)

function callsOf(
  counts: Iterable<CallCount>,
  isMet: (count: CallCount) => boolean,
  passing: readonly string[],
): Omit<MaintenancePreview['calls'], 'since'> {
  const passes = new Set(passing)
  let total = 0
  const refused = new Map<string, number>()
  for (const count of counts) {
    if (!isMet(count)) continue
    const { client, calls } = count
    total += calls
    if (!passes.has(client)) refused.set(client, (refused.get(client) ?? 0) + calls)
  }
  const all = sum(refused.values())
  const clients = [...refused]
    .filter(([client]) => client !== '')
    .map(([client, calls]) => ({ client, calls }))
    .sort((one, other) => other.calls - one.calls || (one.client < other.client ? -1 : 1))
    .slice(0, MOST_CLIENTS)
  return { total, refused: all, clients, others: all - sum(clients.map(({ calls }) => calls)) }
}

/** Websockets are counted by backend, so they are not known for one business, or for one area of a shared backend. */
function websocketsOf(
  { kind }: ClosureScope,
  backends: readonly string[],
  areas: readonly string[],
  { actions }: Closable,
  open: History['websockets'],
): number | undefined {
  if (kind === 'identity') return 0
  const shared = actions.some(({ area, backend }) => backends.includes(backend) && !areas.includes(area))
  if (kind === 'business' || shared) return undefined
  return sum(backends.map((backend) => open[backend] ?? 0))
}

function businessesOf(scope: ClosureScope, { businesses }: Closable): { readonly businesses?: Names } {
  if (scope.kind === 'business') return { businesses: listed([scope.name]) }
  if (scope.kind === 'identity') return { businesses: listed([]) }
  return businesses === undefined ? {} : { businesses: listed(businesses) }
}

export function previewSwitch(
  { scope, clients = [], addresses = [] }: MaintenanceSwitch,
  closable: Closable,
  { since, counts, websockets }: History,
): MaintenancePreview {
  const name = 'name' in scope ? scope.name : ''
  const closed = closable.actions.filter((action) => CLOSES[scope.kind](action, name))
  const areas = unique(closed.map(({ area }) => area))
  const backends = unique(closed.map(({ backend }) => backend))
  return {
    scope: scopeText(scope),
    closes: {
      ...businessesOf(scope, closable),
      areas,
      backends,
      actions: listed(closed.map(({ area, action, methods }) => `${methods.join(',')} ${area}/${action}`)),
    },
    calls: { since, ...callsOf(counts, meets(scope, closed), clients) },
    websockets: websocketsOf(scope, backends, areas, closable, websockets),
    passes: { clients, addresses },
  }
}
