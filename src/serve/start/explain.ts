/** Explains calls by a configuration that is in force, or that is only read. */
import { Problems } from '../../base/config/problems.ts'
import { isTargetValue, joinScope, parseTarget, splitScope } from '../../base/config/scopes/scope-token.ts'
import type { EarlyAdmission } from '../../base/contracts/calls/admission.ts'
import type {
  ClaimedCaller,
  ClaimedCallers,
  ClaimedGrant,
} from '../../base/contracts/people/claimed-callers.ts'
import { NO_KEY } from '../../base/contracts/people/keys.ts'
import { explainCall, type ExplainParts } from '../../gateway/explain/explain.ts'
import { claimedCallers } from '../../identity/claimed-callers.ts'
import { type Clock, epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { IssuerConfig } from '../../identity/keys/issuers/issuers-schema.ts'
import { LONGEST_LIFE } from '../../identity/keys/verify/token-verifier.ts'
import type { RecalledCall } from '../../base/contracts/processes/worker-pool.ts'
import { compileServer } from '../../gateway/server/schema.ts'
import type { KeptCall } from '../../operate/watch/past-calls.ts'
import type { Service } from './compile-service.ts'

/** @param early the limits ahead of the decision */
export function explainPartsOf(
  { parts, runtime, identity, authorities }: Service,
  early: EarlyAdmission,
): ExplainParts {
  const { server, issuers } = parts.configuration
  return {
    runtime,
    catalogue: parts.catalogue,
    reading: {
      authorities,
      limits: server.limits,
      trustedProxies: compileServer(server, new Problems()),
      scheme: server.tls === undefined ? 'http' : 'https',
      host: runtime.host,
    },
    callers: identity ? claimedCallers(identity.dependencies) : sidecarCallers(issuers, runtime.clock),
    isIdentityPath: (path) => identity?.endpoints.has(path) === true,
    early,
  }
}

type NamedIssuer = Pick<IssuerConfig, 'issuer' | 'name'>

interface NamedClient {
  readonly issuer: NamedIssuer
  readonly client: string
}

/**
 * Claimed callers where others issue the tokens (C11.2, C14.1): nobody here knows what they would grant. So client, user (the subject), scope and target are those of the token. The scope must be
 * given. With several issuers the client is `NAME:CLIENT`, as limits and allow lists name it.
 */
const sidecarCallers = (issuers: readonly NamedIssuer[], clock: Clock): ClaimedCallers => ({
  grant: (caller) => Promise.try(() => grant(caller, issuers, clock)),
})

function grant(caller: ClaimedCaller, issuers: readonly NamedIssuer[], clock: Clock): ClaimedGrant {
  const { user: subject } = caller
  if (subject === undefined)
    throw new Fault('invalid_grant', { detail: 'give the subject of the user, not the name' })
  const { issuer, client } = clientOf(caller.client, issuers)
  const values = scopeOf(caller)
  const [target] = values.filter(isTargetValue)
  const several = issuers.length > 1
  const issuedAt = epochSeconds(clock)
  const principal = Object.freeze({
    subject,
    client,
    clientKey: caller.client,
    issuer: issuer.issuer,
    issuerName: several ? issuer.name : undefined,
    scope: joinScope(values),
    scopes: new Set(values),
    target: target === undefined ? undefined : parseTarget(target),
    tokenId: undefined,
    family: undefined,
    issuedAt,
    expiresAt: issuedAt + LONGEST_LIFE,
    key: NO_KEY,
  })
  return { principal, dropped: [] }
}

function clientOf(key: string, issuers: readonly NamedIssuer[]): NamedClient {
  const [only, ...others] = issuers
  if (only !== undefined && others.length === 0) return { issuer: only, client: key }
  const found = issuers.find(({ name }) => name !== undefined && key.startsWith(`${name}:`))
  if (found?.name === undefined)
    throw new Fault('invalid_client', { detail: 'with several issuers a client is named NAME:CLIENT' })
  return { issuer: found, client: key.slice(found.name.length + 1) }
}

function scopeOf({ scope, target }: ClaimedCaller): NonNullable<ReturnType<typeof splitScope>> {
  if (scope === undefined)
    throw new Fault('invalid_scope', { detail: 'say the scope, since others grant it' })
  const own = target === undefined ? '' : ` target:${target.replace(/^target:/, '')}`
  const kept =
    target === undefined
      ? scope
      : scope
          .split(' ')
          .filter((value) => !isTargetValue(value))
          .join(' ')
  const values = splitScope(`${kept}${own}`)
  if (values === undefined)
    throw new Fault('invalid_scope', { detail: 'a character that no scope value may have' })
  if (values.filter(isTargetValue).length > 1)
    throw new Fault('invalid_scope', { detail: 'more than one target' })
  return values
}

const UPGRADE = { Connection: 'Upgrade', Upgrade: 'websocket' }

/** A call of the past, and what would be decided about it now (C14.4); that is undefined if its path is not known. */
export async function recallCall(
  parts: ExplainParts,
  { principal, clientAddress: from, ...call }: KeptCall,
): Promise<RecalledCall> {
  const { method, path, accept, contentType, websocket } = call
  if (path === undefined) return { call, now: undefined }
  const named = { Accept: accept, 'Content-Type': contentType, ...(websocket && UPGRADE) }
  const headers = Object.entries(named).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  // Its body and its other headers are not kept.
  const described = { method, path, headers, from, body: new Uint8Array() }
  return { call, now: await explainCall(parts, described, principal) }
}
