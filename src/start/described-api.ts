/** What clients are told of a configuration: the model that the OpenAPI document and the developer pages are made from. */
import { planAudit } from '../audit/config.ts'
import type { ApiDescription } from '../contracts/api-description.ts'
import type { CompiledActions } from '../gateway/compile-actions.ts'
import { describeApi } from '../gateway/describe/describe.ts'
import type { Limits } from '../gateway/describe/faults.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { ServiceUrls } from '../server/config.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'

interface DescribedParts {
  readonly configuration: Configuration
  readonly actions: CompiledActions
  readonly catalogue: Catalogue
}

export function describedApi(
  { configuration, actions, catalogue }: DescribedParts,
  { baseUrl }: Pick<ServiceUrls, 'baseUrl'>,
): ApiDescription {
  const { areas, openapi, vendor, defaultFormat, server } = configuration
  return describeApi({
    ...{ actions, areas, catalogue, openapi, baseUrl, vendor, defaultFormat },
    bodyLimit: server.limits.body,
    limits: limitsOf(configuration),
  })
}

function limitsOf(configuration: Configuration): Limits {
  const { load, backends, audit, data } = configuration
  const { rate, byId } = load.clients
  return {
    clientRate: rate !== undefined || Object.values(byId).some((own) => own.rate !== undefined),
    addressRate: load.addresses.rate !== undefined,
    shedding: load.shedding.delay > 0,
    severalBackends: Object.keys(backends).length > 1,
    audited: planAudit(audit, data, isSidecar(configuration)) !== undefined,
  }
}
