import { readCode } from '../../base/config/scopes/scope-token.ts'
import type { RateLeft, Use } from '../../base/contracts/calls/admission.ts'
import type { ClosedBy, Closure } from '../../base/contracts/calls/switches.ts'
import { decodeSegment } from '../../base/http/head/request-target.ts'
import type { ActionTable, Route, RouteNode } from '../actions/action-table.ts'
import { AREA_AT, type NamedAction, targets } from '../decide/checks.ts'
import type { CheckDescription, CheckResult, Progress } from './progress.ts'
import { targetTextOf } from './token-facts.ts'

const LEVELS: Readonly<Record<string, string>> = { b: 'business', f: 'fund' }

/** The row of C4.6. */
export function describeAction(progress: Progress, { fault }: CheckResult): CheckDescription {
  const { target, runtime, exchange, named } = progress
  if (target === undefined) return { facts: {}, words: 'The path is not known.' }
  if (fault === undefined && named !== undefined) {
    const { action, backend, upgrade } = named.operation
    const facts = {
      problem: undefined,
      area: action.area,
      action: action.name,
      backend: backend.name,
      websocket: upgrade,
    }
    return {
      facts,
      words: `${exchange.head.method} of ${action.area}/${action.name}, from backend ${backend.name}.`,
    }
  }
  if (fault?.code === 'method_not_allowed') {
    const { allow = [] } = fault.facts
    return {
      facts: { problem: 'method', allowed: allow },
      words: `The action exists, and does not offer ${exchange.head.method}: it offers ${allow.join(', ')}.`,
    }
  }
  const level = target.segments[2] ?? ''
  const area = target.segments[AREA_AT[level] ?? -1]
  if (LEVELS[level] === undefined || area === undefined)
    return {
      facts: { problem: 'path' },
      words:
        'No such action: the path of one begins with /api/1.0/b/{business}/ or /api/1.0/f/{business}/{fund}/.',
    }
  const exists = runtime.actions.rootOf(level === 'f' ? 'f' : 'b', area) !== undefined
  const other = otherLevel(progress, level)
  return {
    facts: {
      problem: exists ? 'action' : 'area',
      area: decodeSegment(area),
      level: LEVELS[level],
      otherLevel: other,
    },
    words: exists
      ? `No such action: area ${decodeSegment(area)} has none of this path at ${LEVELS[level]} level.${hint(other)}${listed(runtime.actions, level, area)}`
      : `No such action: there is no area ${decodeSegment(area)} at ${LEVELS[level]} level.${hint(other)}`,
  }
}

const hint = (other: string | undefined): string =>
  other === undefined ? '' : ` There is one at ${other} level.`

const MOST_NAMED = 10

/** The actions that the area has at the level: somebody who mistyped one finds it among them. */
function listed(actions: ActionTable<Route>, level: string, area: string): string {
  const root = actions.rootOf(level === 'f' ? 'f' : 'b', area)
  const rests = actions.rests.get(`${level === 'f' ? 'f' : 'b'}/${area}`) ?? []
  const names = [
    ...new Set([...(root ? namesBelow(root) : []), ...rests.flatMap(({ value }) => namesOf(value))]),
  ]
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : ''
  return names.length === 0 ? '' : ` It has ${names.slice(0, MOST_NAMED).join(', ')}${more}.`
}

const namesOf = ({ methods }: Route): readonly string[] =>
  [...methods.values()].map(({ action }) => action.name)

function namesBelow({ value, literals, parameters }: RouteNode<Route>): readonly string[] {
  const own = value === undefined ? [] : namesOf(value)
  return [...own, ...[...literals.values(), ...parameters.map(({ node }) => node)].flatMap(namesBelow)]
}

function otherLevel({ target, runtime }: Progress, level: string): string | undefined {
  const other = level === 'f' ? 'b' : 'f'
  const areaAt = AREA_AT[level] ?? 0
  const { segments = [] } = target ?? {}
  const found = runtime.actions.find(other, segments[areaAt] ?? '', segments, areaAt + 1)
  return found && LEVELS[other]
}

/** The row of C4.8. The wire does not say which of the 404s it is (C4.12). */
export async function describePlace(progress: Progress, { verdict }: CheckResult): Promise<CheckDescription> {
  const { principal, named } = progress
  if (named === undefined) return { facts: {}, words: 'The place is not known without the action.' }
  const { business, fund } = named
  const place = fund === undefined ? `business ${business}` : `fund ${fund} of business ${business}`
  const { exists, businessExists } = await existenceOf(progress, named)
  const isCode = fund === undefined || readCode(fund) !== undefined
  const isTarget = principal && targets(principal.target, named)
  const problems = [
    exists === 'not known' && 'store unreachable',
    exists === false && (businessExists === true ? 'unknown fund' : 'unknown business'),
    !isCode && 'no code',
    isTarget === false && (principal?.target === undefined ? 'no target' : 'other target'),
  ].filter((each) => each !== false)
  const held = principal && (targetTextOf(principal) ?? 'no target')
  return {
    facts: { business, fund, exists, target: held, isTarget, problems },
    words:
      verdict === 'passed'
        ? `The token is for ${held ?? ''}, and ${place} exists.`
        : problems.map((each) => PROBLEMS[each]?.(place, held ?? '') ?? each).join(' ') ||
          `It is about ${place}.`,
  }
}

/** Undefined in a sidecar without a directory. */
type Existence = boolean | 'not known' | undefined

async function existenceOf(
  { runtime: { places } }: Progress,
  { business, fund }: NamedAction,
): Promise<{ readonly exists: Existence; readonly businessExists: Existence }> {
  if (places === undefined) return { exists: undefined, businessExists: undefined }
  try {
    const exists = await places.look(business, fund)
    return { exists, businessExists: exists || (await places.look(business)) }
  } catch {
    return { exists: 'not known', businessExists: 'not known' }
  }
}

const PROBLEMS: Readonly<Record<string, (place: string, held: string) => string>> = {
  'store unreachable': (place) => `Whether there is a ${place} is not known: the store cannot be reached.`,
  'unknown fund': (place) => `The place is unknown: there is no ${place}, though the business exists.`,
  'unknown business': (place) => `The place is unknown: there is no ${place}.`,
  'no code': (place) => `The place is unknown: ${place} has a character that no code may have.`,
  'no target': () => 'The token has no target, so it opens no business.',
  'other target': (place, held) =>
    `The token is for another target: it is for ${held}, and the call is about ${place}.`,
}

const time = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString()

const rateText = ({ left, burst, requests, per }: RateLeft): string =>
  `${left} of ${burst} calls are left at once (${requests} in ${per} s)`

const useText = ({ now, most }: Use, of: string): string =>
  most === undefined ? `${now} ${of}` : `${now} of ${most} ${of}`

/** The row of C4.1. */
export function describeRequest(
  { exchange, early, target, reportOnly }: Progress,
  { fault }: CheckResult,
): CheckDescription {
  const facts = {
    path: target?.path,
    clientAddress: exchange.clientAddress,
    scheme: exchange.scheme,
    addressRate: early?.rate,
    shedShare: early?.shed,
    reportOnly,
  }
  const from = `It comes from ${exchange.clientAddress}.`
  if (fault === undefined) return { facts, words: `The request can be read. ${from}` }
  const wait = fault.code === 'address_rate_limited' && early?.rate ? ` ${rateText(early.rate)}.` : ''
  return { facts, words: `${fault.publicText}${wait} ${from}` }
}

/** The row of C4.2, of the switch of the whole service. */
export const describeServiceSwitch = (progress: Progress, result: CheckResult): CheckDescription =>
  describeClosure(progress.runtime.switches.service(), progress, result, 'the service')

/** The row of C4.9. */
export function describePlaceSwitch(progress: Progress, result: CheckResult): CheckDescription {
  const { named, runtime } = progress
  if (named === undefined)
    return { facts: {}, words: 'Which switches count is not known without the action.' }
  const { action, backend } = named.operation
  const closure = runtime.switches.place(named.business, action.area, backend.name)
  const what = `business ${named.business}, area ${action.area} or backend ${backend.name}`
  return describeClosure(closure, progress, result, what)
}

function describeClosure(
  closure: Closure | undefined,
  { exchange }: Progress,
  { verdict }: CheckResult,
  what: string,
): CheckDescription {
  if (closure === undefined) return { facts: { closedBy: [] }, words: `No maintenance closes ${what}.` }
  const closedBy = closure.closedBy.map(({ from, until, ...each }) => ({
    ...each,
    from: time(from),
    until: time(until),
  }))
  const addressAllowed = closure.admitsAddress(exchange.clientAddress)
  const switches = closure.closedBy.map(switchText).join('; ')
  const passes = addressAllowed ? 'the address is' : 'the client is'
  return {
    facts: { closedBy, addressAllowed, allowedClients: [...closure.clients], retryAfter: closure.retryAfter },
    words: WORDS[verdict](switches, passes),
  }
}

const WORDS: Readonly<Record<CheckResult['verdict'], (switches: string, passes: string) => string>> = {
  passed: (switches, passes) => `Closed by ${switches}, but ${passes} on the list of those that pass.`,
  failed: (switches) => `Closed by ${switches}.`,
  unknown: (switches) =>
    `Closed by ${switches}. Whether the client is on the list of those that pass is not known.`,
  'not reached': (switches) => `Closed by ${switches}.`,
}

function switchText({ scope, from, until, by, reason, source }: ClosedBy): string {
  const parts = [
    `the switch of ${scope}`,
    source === 'configuration' && 'in the configuration',
    from !== undefined && `since ${time(from)}`,
    until !== undefined && `until ${time(until)}`,
    by !== undefined && `by ${by}`,
    reason !== undefined && `(${reason})`,
  ]
  return parts.filter((part) => part !== false).join(' ')
}

/** The row of C4.5. */
export function describeRate({ principal, runtime }: Progress, { fault }: CheckResult): CheckDescription {
  const preview = principal && runtime.admission.seen(principal)
  if (principal === undefined || preview === undefined)
    return { facts: {}, words: 'Nobody is known to call, so no rate is known.' }
  const { rate, inFlight } = preview
  const left = rate === undefined ? 'has no rate' : rateText(rate)
  const client = principal.clientKey
  return {
    facts: { client, rate, inFlight, retryAfter: fault?.facts.retryAfter },
    words: `Client ${client}: ${left}, ${useText(inFlight, 'calls in flight')} in this process.`,
  }
}

/** The row behind C4.11. */
export function describeBackend({ named, principal, runtime }: Progress): CheckDescription {
  if (named === undefined) return { facts: {}, words: 'The backend is not known without the action.' }
  const { name } = named.operation.backend
  const preview = runtime.admission.previewBackend?.(name, principal?.clientKey)
  if (preview === undefined) return { facts: { backend: name }, words: `Backend ${name} has no limit.` }
  const share = preview.ofClient && `, ${useText(preview.ofClient, 'of the client')}`
  return {
    facts: { backend: name, inFlight: preview.inFlight, ofClient: preview.ofClient },
    words: `Backend ${name}: ${useText(preview.inFlight, 'calls in flight')}${share ?? ''}, in this process.`,
  }
}
