/** What explains calls by a configuration that is in force, or that is only read. */
import type { AuditEntry } from '../contracts/audit.ts'
import type { Explanation } from '../contracts/explanation.ts'
import { byOperator, type Operator } from '../audit/audited-change.ts'
import { Problems } from '../config/problems.ts'
import type { EarlyAdmission } from '../contracts/admission.ts'
import type { ExplainParts } from '../gateway/explain/explain.ts'
import { claimedCallers } from '../identity/claimed-callers.ts'
import { compileServer } from '../server/schema.ts'
import type { Service } from './service.ts'
import { sidecarCallers } from './sidecar-callers.ts'

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

/** The record of a question (C12.3). A path may hold personal values: only what an action names is recorded. */
export function recordOfQuestion(
  { outcome, method, refusal, action, caller }: Explanation,
  operator: Operator,
): AuditEntry {
  return {
    event: 'explain.asked',
    outcome: 'success',
    ...byOperator(operator),
    on: {
      ...{
        business: action?.business,
        fund: action?.fund,
        area: action?.area,
        action: action?.action,
        method,
      },
      ...{ subject: caller?.subject, client: caller?.client },
    },
    grant: { scope: caller?.scope, target: caller?.target },
    change: { answer: outcome, ...(refusal && { reason: refusal.reason }) },
  }
}
