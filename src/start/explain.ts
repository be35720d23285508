/** What explains calls by a configuration that is in force, or that is only read. */
import { Report } from '../config/report.ts'
import type { EarlyAdmission } from '../contracts/admission.ts'
import type { ExplainParts } from '../gateway/explain/explain.ts'
import { claimedCallers } from '../identity/claimed-callers.ts'
import { compileServer } from '../server/config.ts'
import type { Service } from './service.ts'

/** @param early the limits ahead of the decision */
export function explainPartsOf(
  { parts, runtime, identity, authorities }: Service,
  early: EarlyAdmission,
): ExplainParts {
  const { server } = parts.configuration
  return {
    runtime,
    catalogue: parts.catalogue,
    reading: {
      authorities,
      limits: server.limits,
      trustedProxies: compileServer(server, new Report()),
      scheme: server.tls === undefined ? 'http' : 'https',
      host: runtime.host,
    },
    callers: identity && claimedCallers(identity.dependencies),
    isIdentityPath: (path) => identity?.endpoints.has(path) === true,
    early,
  }
}
