/** What clients are told of a configuration: the model that the OpenAPI document and the developer pages are made from. */
import { planAudit } from '../audit/schema.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import type { ApiDescription, AuthorizationDescription } from '../contracts/api-description.ts'
import type { CompiledActions } from '../gateway/compile-actions.ts'
import { describeApi } from '../gateway/describe/describe.ts'
import type { Limits } from '../gateway/describe/faults.ts'
import { openapiDocument } from '../gateway/openapi/document.ts'
import { readyDocument, type ReadyDocument } from '../http/entity-tag.ts'
import type { DeveloperOffer } from '../identity/developers/frame.ts'
import { hasDeveloperPages, sampleLogin } from '../identity/developers/schema.ts'
import { metadataUrls } from '../keys/issuer-source.ts'
import { type IssuerConfig, readsMetadata } from '../keys/issuers-schema.ts'
import type { ServiceUrls } from '../server/schema.ts'
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

/** Seconds. Short, since it may change by a reload. */
const MAX_AGE = 300

/**
 * The OpenAPI document, ready to be sent (C11.3.8); undefined if there is none.
 * @param metadata the service's own, as JSON; undefined in a sidecar
 */
export function openapiOf(
  { openapi, issuers }: Pick<Configuration, 'openapi' | 'issuers'>,
  description: ApiDescription,
  metadata: string | undefined,
): ReadyDocument | undefined {
  if (openapi === 'off') return undefined
  const authorization = metadata === undefined ? foreign(issuers) : ownAuthorization(metadata)
  const { license, contact } = openapi ?? {}
  const document = openapiDocument(description, { authorization, license, contact })
  return readyDocument(Buffer.from(document), {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': `public, max-age=${MAX_AGE}`,
    'X-Content-Type-Options': 'nosniff',
  })
}

/** RFC 8414 §2: as the service's metadata says, so that the two cannot disagree. */
function ownAuthorization(metadata: string): AuthorizationDescription {
  const told = JSON.parse(metadata) as Readonly<Record<string, unknown>>
  const text = (member: string): string => String(told[member])
  return {
    kind: 'own',
    issuer: text('issuer'),
    authorizationUrl: text('authorization_endpoint'),
    tokenUrl: text('token_endpoint'),
    grants: told['grant_types_supported'] as readonly string[],
  }
}

const foreign = (issuers: readonly IssuerConfig[]): AuthorizationDescription => ({
  kind: 'foreign',
  issuers: issuers.map((config) => ({
    name: config.name,
    issuer: config.issuer,
    metadataUrl: readsMetadata(config) ? metadataUrls(config.issuer)[0] : undefined,
  })),
})
