import { smallestScopes } from '../../base/config/scopes/catalogue.ts'
import { isTargetValue } from '../../base/config/scopes/scope-token.ts'
import { NEEDS_ISSUER } from '../../base/contracts/people/keys.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { declaredBody } from '../../base/http/head/head.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { checkBody, readCallBody } from '../decide/body.ts'
import {
  admit,
  API_VERSION,
  authenticate,
  checkUserinfo,
  matchAction,
  negotiate,
  passServiceMaintenance,
  readTarget,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireScope,
  VerifyFirst,
} from '../decide/checks.ts'
import { checkParameters } from '../actions/parameters.ts'
import { requireProof } from '../decide/proof-check.ts'
import { unmatched } from '../decide/report-only.ts'
import {
  describeAction,
  describeBackend,
  describePlace,
  describePlaceSwitch,
  describeRate,
  describeRequest,
  describeServiceSwitch,
} from './place-facts.ts'
import {
  type CheckDescription,
  type CheckExplainer,
  type CheckResult,
  type Progress,
  Undecidable,
} from './progress.ts'
import { describeProof, describeToken } from './token-facts.ts'

/** The row of C4.7: values held, implied and missing, and the smallest set that would do (C14.3). */
function describeScope({ principal, named, catalogue }: Progress): CheckDescription {
  if (named === undefined)
    return { facts: {}, words: 'Which scope it takes is not known without the action.' }
  const { groups } = named.operation.scopes
  const required = smallestScopes(groups, catalogue)
  if (principal === undefined)
    return { facts: { required }, words: `The action takes ${listed(required)}; nobody is known to call.` }
  const held = [...principal.scopes].filter((value) => !isTargetValue(value))
  const own: ReadonlySet<string> = new Set(held)
  const implied = [...catalogue.close(held)].filter((value) => !own.has(value))
  const missing = smallestScopes(groups, catalogue, own)
  return {
    facts: { held, implied, missing, required },
    words:
      missing?.length === 0
        ? `The token's scope is enough. The action takes ${listed(required)}.`
        : `The token has ${listed(held)}. With ${listed(missing)} it would be enough.`,
  }
}

const listed = (values: readonly string[] | undefined): string =>
  values === undefined
    ? 'a scope value that nothing gives'
    : values.length === 0
      ? 'no scope value'
      : values.join(' and ')

/** A fault in words: the text for the client, and what only the log has. */
const faultText = ({ fault }: CheckResult): string =>
  fault === undefined
    ? ''
    : [fault.publicText, fault.facts.say, fault.facts.detail]
        .filter(
          (part, at, all) => part !== undefined && !all.slice(0, at).some((before) => before?.includes(part)),
        )
        .join(' ')

/** The row of C4.3. */
function describeVersion({ target }: Progress, { verdict }: CheckResult): CheckDescription {
  const named = target?.segments[1]
  return {
    facts: { named, known: [API_VERSION] },
    words:
      verdict === 'passed'
        ? `API version ${API_VERSION}.`
        : `The path names ${named === undefined ? 'no API version' : `the API version ${named}`}; there is ${API_VERSION}.`,
  }
}

/** The row of C4.10. */
function describeAccept({ named, exchange, runtime }: Progress, result: CheckResult): CheckDescription {
  const accept = exchange.head.headers.accept
  if (named === undefined)
    return { facts: { accept }, words: 'What is offered is not known without the action.' }
  const { produces, versions } = named.operation
  const offered = produces ?? [`versions ${versions.versions.join(', ')} in JSON or XML`]
  const asked = accept === undefined ? 'There is no Accept header.' : `Accept is "${accept}".`
  return {
    facts: {
      accept,
      produces,
      versions: versions.versions,
      defaultVersion: versions.defaultVersion,
      errors: runtime.negotiation.formatOfErrors(accept),
    },
    words: `${asked} The action offers ${offered.join(', ')}.${result.verdict === 'failed' ? ` ${faultText(result)}` : ''}`,
  }
}

/** The row of C4.11 about the query. None of its values is repeated. */
function describeParameters({ named }: Progress, result: CheckResult): CheckDescription {
  const declared = named?.operation.query?.parameters
  const names = declared?.map(({ name, required }) => (required ? `${name} (required)` : name)) ?? []
  return {
    facts: {
      declared: declared?.map(({ name }) => name),
      required: declared?.filter(({ required }) => required).map(({ name }) => name),
    },
    words:
      result.verdict === 'failed'
        ? faultText(result)
        : named === undefined
          ? 'Which parameters it takes is not known without the action.'
          : names.length === 0
            ? 'No parameter of the query is declared: all pass unchecked.'
            : `Declared: ${names.join(', ')}. What the query has of them fits.`,
  }
}

/** The row of C4.11. No part of the body is repeated. */
function describeBody(
  { named, exchange, call, runtime, body }: Progress,
  result: CheckResult,
): CheckDescription {
  const { headers } = exchange.head
  const rule = named?.operation.body.kind
  const declared = declaredBody(exchange.head)
  return {
    facts: {
      contentType: headers['content-type'],
      declared,
      bytes: call.body.length,
      limit: runtime.bodyLimit,
      rule,
      consumes: named?.operation.consumes,
      taken: body?.kind,
    },
    words:
      result.verdict === 'failed'
        ? faultText(result)
        : rule === undefined
          ? 'What body it takes is not known without the action.'
          : BODIES[body?.kind ?? 'none'],
  }
}

const BODIES = {
  none: 'There is no body, and none is needed.',
  parsed: 'The body parses, and fits the action.',
  opaque: 'The body passes unread.',
} as const

/** The row of userinfo's own checks. */
const describeUserinfo = ({ exchange, principal }: Progress, result: CheckResult): CheckDescription => ({
  facts: { method: exchange.head.method, scope: principal?.scope, accept: exchange.head.headers.accept },
  words:
    result.verdict === 'failed' ? faultText(result) : 'Userinfo: method, scope, Accept and Content-Type.',
})

/** The value that an earlier check has found. Used after `isReady` only. */
function found<T>(value: T | undefined): T {
  if (value === undefined)
    throw new Fault('internal', { detail: 'a check was explained without what it needs' })
  return value
}

/** Whether it cannot be known here who calls. */
export const isUnknown = (thrown: unknown): boolean =>
  thrown instanceof Undecidable || (thrown instanceof Fault && thrown.facts.detail === NEEDS_ISSUER)

function readRequest(progress: Progress): void {
  const { exchange } = progress
  try {
    progress.target = readTarget({ target: exchange.target })
  } finally {
    // With the refusals that need no target: of an address, or under load.
    readTarget(exchange)
  }
}

function passService({ runtime, exchange, credentials }: Progress): void {
  const closure = runtime.switches.service()
  const asks = closure !== undefined && closure.clients.size > 0
  if (asks && isUnknown(credentials.verified) && !closure.admitsAddress(exchange.clientAddress))
    throw new Undecidable('who calls')
  passServiceMaintenance(runtime, exchange, credentials.verified)
}

function authenticateCaller(progress: Progress): void {
  const { runtime, exchange, credentials } = progress
  progress.principal = credentials.claimed
  const caller = authenticate(runtime, exchange, credentials.verified)
  if (caller instanceof VerifyFirst) throw new Fault('internal', { detail: 'a token was not verified' })
  progress.principal = caller
  progress.authenticated = true
}

/** A token that was given next to the call has no proof: only its client could make one. */
function proveKey(progress: Progress): void {
  const { call, exchange, principal, runtime } = progress
  const caller = found(principal)
  if (call.token !== undefined && caller.confirmation !== undefined)
    throw new Undecidable('whether its client has the key')
  progress.authenticated = false
  requireProof(runtime, exchange, caller, {})
  progress.authenticated = true
}

function admitCall({ runtime, principal, exchange }: Progress): void {
  const caller = found(principal)
  if (runtime.admission.seen(caller) === undefined) return
  admit(runtime, caller, exchange, {})
}

/** In a report-only area a call is treated as one of an action that takes everything. */
function findAction(progress: Progress): void {
  const { runtime, exchange, reportOnly } = progress
  const target = found(progress.target)
  if (reportOnly !== undefined) progress.named = unmatched(runtime, reportOnly, target, exchange.head.method)
  progress.named = matchAction(runtime.actions, target, exchange.head.method)
}

/** The caller whose name counts at a switch: in a report-only area, the caller of a refused token does not. */
const namedCaller = ({ principal, authenticated, reportOnly }: Progress): Principal | undefined =>
  authenticated || reportOnly === undefined ? principal : undefined

function passPlace(progress: Progress): void {
  const { runtime, exchange, named, authenticated } = progress
  const { operation, business } = found(named)
  try {
    refuseInPlaceMaintenance(runtime, exchange, namedCaller(progress), operation, business)
  } catch (thrown) {
    if (!authenticated && isUnknown(progress.credentials.verified)) throw new Undecidable('who calls')
    throw thrown
  }
}

async function takeBody(progress: Progress): Promise<void> {
  const { runtime, exchange, call, named } = progress
  const { operation } = found(named)
  const plan = (progress.body = checkBody(exchange.head, operation, runtime.bodyLimit))
  if (plan.kind !== 'parsed') return
  const declared = declaredBody(exchange.head)
  if (declared !== 'chunked' && declared !== call.body.length)
    throw new Undecidable('the body that is described is not as long as Content-Length says')
  await readCallBody(plan, exchange, operation, runtime.conversions)
}

function findRoom({ runtime, named, principal, authenticated }: Progress): void {
  const { name } = found(named).operation.backend
  const client = authenticated ? principal?.clientKey : undefined
  const refusal = runtime.admission.previewBackend?.(name, client).refusal
  if (refusal !== undefined) throw refusal
}

const always = (): boolean => true
const hasTarget = ({ target }: Progress): boolean => target !== undefined
const hasCaller = ({ principal }: Progress): boolean => principal !== undefined
const hasAction = ({ named }: Progress): boolean => named !== undefined
const hasBoth = (progress: Progress): boolean => hasCaller(progress) && hasAction(progress)

/** How each check of decide/order.ts is explained, by the name of the function that makes it. */
export const EXPLAINERS: Readonly<Record<string, CheckExplainer>> = {
  readTarget: { isReady: always, check: readRequest, describe: describeRequest },
  passServiceMaintenance: { isReady: always, check: passService, describe: describeServiceSwitch },
  requireApiVersion: {
    isReady: hasTarget,
    check: ({ target }) => requireApiVersion(found(target)),
    describe: describeVersion,
  },
  authenticate: { isReady: always, check: authenticateCaller, describe: describeToken },
  requireProof: { isReady: ({ authenticated }) => authenticated, check: proveKey, describe: describeProof },
  admit: { isReady: hasCaller, check: admitCall, describe: describeRate },
  matchAction: { isReady: hasTarget, check: findAction, describe: describeAction },
  requireScope: {
    isReady: hasBoth,
    check: ({ principal, named }) => requireScope(found(principal), found(named).operation.scopes),
    describe: describeScope,
  },
  requirePlace: {
    isReady: hasBoth,
    check: ({ runtime, principal, named }) => requirePlace(runtime.places, found(principal), found(named)),
    describe: describePlace,
  },
  refuseInPlaceMaintenance: { isReady: hasAction, check: passPlace, describe: describePlaceSwitch },
  negotiate: {
    isReady: hasAction,
    check: ({ runtime, exchange, named }) =>
      negotiate(runtime.negotiation, exchange.head, found(named).operation),
    describe: describeAccept,
  },
  checkParameters: {
    isReady: (progress) => hasTarget(progress) && hasAction(progress),
    check: ({ target, named }) => checkParameters(found(target), found(named).operation),
    describe: describeParameters,
  },
  checkBody: { isReady: hasAction, check: takeBody, describe: describeBody },
  occupy: { isReady: hasAction, check: findRoom, describe: describeBackend },
  checkUserinfo: {
    isReady: hasCaller,
    check: ({ runtime, exchange, principal }) => checkUserinfo(runtime, exchange.head, found(principal)),
    describe: describeUserinfo,
  },
}

/** Makes one check. Undefined if it passes. Rejects with a defect. */
export async function faultOfCheck(
  explainer: CheckExplainer,
  progress: Progress,
): Promise<Fault | Undecidable | undefined> {
  try {
    await explainer.check(progress)
    return undefined
  } catch (thrown) {
    return thrown instanceof Undecidable ? thrown : toFault(thrown)
  }
}
