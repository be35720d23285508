/** What clients are told of a configuration: the model that the OpenAPI document and the developer pages are made from. */
import { planAudit } from '../audit/config.ts'
import type { ApiDescription } from '../contracts/api-description.ts'
import type { CompiledActions } from '../gateway/compile-actions.ts'
import { describeApi } from '../gateway/describe/describe.ts'
import type { Limits } from '../gateway/describe/faults.ts'
import { hasDeveloperPages, sampleLogin } from '../identity/developers/config.ts'
import type { DeveloperOffer } from '../identity/developers/parts.ts'
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

/** What the developer pages tell; undefined where there are none (C11.4). */
export function developerOffer(
  { developers, openapi }: Pick<Configuration, 'developers' | 'openapi'>,
  api: ApiDescription,
): DeveloperOffer | undefined {
  if (!hasDeveloperPages(developers)) return undefined
  const contact = openapi === 'off' ? undefined : openapi?.contact
  return {
    api,
    openapiUrl: openapi === 'off' ? undefined : `${api.baseUrl}/.well-known/openapi.json`,
    contact: contact?.url ?? contact?.email,
    sample: sampleLogin(developers),
  }
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
