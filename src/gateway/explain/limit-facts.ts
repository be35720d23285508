/** What operators are told of limits and switches (C14.3): how much rate is left, which switch closes. */
import type { RateLeft, Use } from '../../contracts/admission.ts'
import type { ClosedBy, Closure } from '../../contracts/switches.ts'
import type { CheckResult, Progress, CheckDescription } from './progress.ts'

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
    ...{ ...each, from: time(from), until: time(until) },
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
