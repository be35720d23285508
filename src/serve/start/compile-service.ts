/** Compiles one configuration into everything that a decision reads. A reload compiles another and swaps the whole. */
import { Buffer } from 'node:buffer'
import type { ApiDescription, AuthorizationDescription } from '../../base/contracts/calls/api-description.ts'
import type { Places } from '../../base/contracts/people/places.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { DirectoryMethods } from '../../identity/directory/records/people.ts'
import { openEditors } from '../../identity/directory/editors/editors.ts'
import { LayeredPlaces } from '../../identity/directory/records/places.ts'
import { changingScopes } from '../../gateway/actions/compile-actions.ts'
import { describeApi } from '../../gateway/describe/describe.ts'
import type { Limits } from '../../gateway/describe/faults.ts'
import { openapiDocument } from '../../gateway/openapi/document.ts'
import { compileFaultRenderer, type FaultRenderer } from '../../gateway/decide/represent.ts'
import { RESOURCE_PATH } from '../../identity/endpoints/documents.ts'
import type { CallProofs, Runtime } from '../../gateway/decide/runtime.ts'
import { TokenCheck } from '../../gateway/decide/token-check.ts'
import { compileNegotiation } from '../../base/http/head/accept.ts'
import { Cors } from '../../base/http/head/cors.ts'
import { type ReadyDocument, readyDocument } from '../../base/http/head/entity-tag.ts'
import { type Authorities, compileAuthorities } from '../../base/http/head/request-target.ts'
import { userinfo } from '../../identity/tokens/claims.ts'
import { type Identity, openIdentity } from '../../identity/identity.ts'
import type { IssuerKeys } from '../../identity/keys/issuers/issuer-keys.ts'
import { metadataUrls } from '../../identity/keys/issuers/issuer-source.ts'
import type { IssuerConfig } from '../../identity/keys/issuers/issuers-schema.ts'
import { createOutboundClient } from '../../identity/keys/remote/outbound.ts'
import { createTokenVerifier } from '../../identity/keys/verify/token-verifier.ts'
import { DESCRIPTION_PATH, type ServiceUrls } from '../../gateway/server/schema.ts'
import type { EndpointParts, MakeEndpoints } from '../../identity/steps/added-endpoints.ts'
import type { PublishedApi } from '../../operate/hooks/extension.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { trailFolderOf } from './settings.ts'
import type { Dependencies, Parts } from '../parts/parts.ts'
import { peopleOf } from '../parts/people.ts'
import { foreignAuthority, ownAuthority } from './token-authorities.ts'

/** The description of the API. All that clients are told of the API is made from it. */
function describedApi(
  { configuration, actions, catalogue }: Pick<Parts, 'configuration' | 'actions' | 'catalogue'>,
  { baseUrl }: Pick<ServiceUrls, 'baseUrl'>,
  proofs: CallProofs | undefined,
): ApiDescription {
  const { areas, openapi, vendor, defaultFormat, server } = configuration
  return describeApi({
    actions,
    areas,
    catalogue,
    openapi,
    baseUrl,
    vendor,
    defaultFormat,
    bodyLimit: server.limits.body,
    limits: limitsOf(configuration, proofs),
  })
}

function limitsOf(configuration: Configuration, proofs: CallProofs | undefined): Limits {
  const { load, backends } = configuration
  const { rate, byId } = load.clients
  return {
    clientRate: rate !== undefined || Object.values(byId).some((own) => own.rate !== undefined),
    addressRate: load.addresses.rate !== undefined,
    shedding: load.shedding.delay > 0,
    severalBackends: Object.keys(backends).length > 1,
    proofs: proofs !== undefined,
    audited: trailFolderOf(configuration) !== undefined,
  }
}

/** How long clients may keep it, in seconds. Short, because it may change by a reload. */
const MAX_AGE = 300

/** The service's own metadata (C6.3.2). */
type Metadata = EndpointParts['metadata']

/**
 * The OpenAPI document (C11.3), as JSON.
 * @param metadata undefined in a sidecar
 */
function openapiText(
  { openapi, issuers }: Pick<Configuration, 'openapi' | 'issuers'>,
  description: ApiDescription,
  metadata: Metadata | undefined,
  { issuerKeys, security }: Pick<Dependencies, 'issuerKeys' | 'security'>,
): string {
  const authorization =
    metadata === undefined ? foreign(issuers, issuerKeys) : ownAuthorization(metadata, security.note)
  const { license, contact } = openapi === 'off' ? {} : (openapi ?? {})
  return openapiDocument(description, { authorization, license, contact })
}

/** Ready to be sent (C11.3.8). */
const readyOpenapi = (text: string): ReadyDocument =>
  readyDocument(Buffer.from(text), {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': `public, max-age=${MAX_AGE}`,
    'X-Content-Type-Options': 'nosniff',
  })

/** The authorization (RFC 8414 §2) as the service's metadata says, so that the two cannot disagree. */
function ownAuthorization(metadata: Metadata, note: string): AuthorizationDescription {
  const text = (member: string): string => String(metadata[member])
  return {
    kind: 'own',
    issuer: text('issuer'),
    authorizationUrl: text('authorization_endpoint'),
    tokenUrl: text('token_endpoint'),
    grants: metadata['grant_types_supported'] as readonly string[],
    note,
  }
}

const foreign = (issuers: readonly IssuerConfig[], keys: IssuerKeys): AuthorizationDescription => ({
  kind: 'foreign',
  issuers: issuers.map((config) => ({
    name: config.name,
    issuer: config.issuer,
    metadataUrl: keys.readsMetadata(config) ? metadataUrls(config.issuer)[0] : undefined,
  })),
})

/** The parts that the public listener's doors serve. */
export interface Service {
  readonly parts: Parts
  readonly runtime: Runtime
  /** Absent in a sidecar. */
  readonly identity: Identity | undefined
  readonly authorities: Authorities
  readonly renderFault: FaultRenderer
  /** The description of the API for clients (C11.3), as an OpenAPI document; undefined if none is served (`openapi: off`). */
  readonly document: ReadyDocument | undefined
}

/** Compiles the parts for the service's URLs, which are known once the listener is bound. */
export function compileService(
  parts: Parts,
  dependencies: Dependencies,
  urls: ServiceUrls,
  recorder: Recorder,
): Service {
  const { configuration } = parts
  const { vendor, defaultFormat } = configuration
  const negotiation = compileNegotiation({ vendor, defaultFormat })
  const { keys, security } = dependencies
  const proofs = security.callProofs({ configuration, keys, baseUrl: urls.baseUrl, recorder })
  const tokens = openTokenCheck(parts, dependencies, urls, recorder, proofs)
  const description = describedApi(parts, urls, proofs)
  const isServed = configuration.openapi !== 'off'
  const textOf = (metadata: Metadata | undefined): string =>
    openapiText(configuration, description, metadata, dependencies)
  let document: ReadyDocument | undefined
  const identity = openOwnIdentity(parts, dependencies, urls, tokens, recorder, (metadata) => ({
    areas: description.areas.map(({ name }) => name),
    document: () => (document === undefined ? textOf(metadata) : String(document.body)),
    url: isServed ? urls.baseUrl + DESCRIPTION_PATH : undefined,
  }))
  if (isServed)
    document = readyOpenapi(textOf(identity && (JSON.parse(identity.dependencies.metadata) as Metadata)))
  const runtime: Runtime = Object.freeze({
    ...dependencies,
    actions: parts.actions.table,
    reportOnly: parts.actions.reportOnly,
    negotiation,
    tokens,
    proofs,
    places: placesOf(parts, dependencies),
    userinfo: identity && userinfo(identity.dependencies),
    recorder,
    baseUrl: urls.baseUrl,
    resourceMetadata: configuration.server.resourceMetadata ? urls.baseUrl + RESOURCE_PATH : undefined,
    issuer: urls.authUrl,
    host: new URL(urls.baseUrl).host,
    bodyLimit: configuration.server.limits.body,
    answerLimit: configuration.server.limits.answer,
    strictHeaderNames: configuration.server.strictHeaderNames,
    anySchemeCase: configuration.identity.strictRfc6749,
    cors: corsOf(configuration),
  })
  return {
    parts,
    runtime,
    identity,
    authorities: compileAuthorities([urls.authUrl, urls.baseUrl]),
    renderFault: compileFaultRenderer(negotiation, runtime),
    document,
  }
}

/** A sidecar has no store, and one that names no businesses compares the target with the URL only (C11.2). */
function placesOf({ directory }: Parts, { keys, storedPlaces }: Dependencies): Places | undefined {
  if (keys !== undefined) return new LayeredPlaces(directory.places, storedPlaces)
  return directory.businesses.size === 0 ? undefined : directory.places
}

function openOwnIdentity(
  parts: Parts,
  dependencies: Dependencies,
  urls: ServiceUrls,
  tokens: TokenCheck,
  recorder: Recorder,
  apiOf: (metadata: Metadata) => PublishedApi,
): Identity | undefined {
  const { configuration, directory, catalogue } = parts
  const { clientForm, keys, clock, security: profile } = dependencies
  if (keys === undefined) return undefined
  const { allow } = configuration.server.outbound
  const outbound = createOutboundClient({ allow, authUrl: urls.authUrl })
  const own = {
    ...dependencies,
    ...peopleOf(parts, { ...dependencies, recorder }),
    places: new LayeredPlaces(directory.places, dependencies.storedPlaces),
    catalogue,
    users: openEditors({ ...dependencies, configured: directory, catalogue }).user,
    signer: keys,
    publicKeys: keys,
    tokenVerifier: createTokenVerifier(keys, clock),
    deriver: keys,
    issuedTokens: tokens,
    recorder,
    urls: { issuer: urls.authUrl, api: urls.baseUrl },
    config: configuration.identity,
    strictHeaderNames: configuration.server.strictHeaderNames,
    anySchemeCase: configuration.identity.strictRfc6749,
    changingScopes: changingScopes(configuration.actions, {
      catalogue,
      upgrade: dependencies.addedBackends.upgrade,
    }),
    longestTarget: configuration.server.limits.target,
    outbound,
    cors: corsOf(configuration),
  }
  const security = profile.clientSecurity(own)
  const clientMethods = new DirectoryMethods({
    configured: directory.clients.values(),
    isNotified: dependencies.logouts.isNotified,
    added: security.uses,
    form: clientForm,
    store: dependencies.store,
    clock,
  })
  const made = parts.endpoints.map(
    (ofApi): MakeEndpoints =>
      (parts) =>
        ofApi(apiOf(parts.metadata))(parts),
  )
  return openIdentity({ ...own, security, clientMethods }, { made, authorization: profile.endpoints })
}

const corsOf = ({ server: { cors } }: Configuration): Cors | undefined => cors && new Cors(cors)

/** Accepts, in a sidecar, the tokens of the configured issuers; otherwise our own (C11.2). */
function openTokenCheck(
  { configuration }: Parts,
  dependencies: Dependencies,
  urls: ServiceUrls,
  recorder: Recorder,
  proofs: CallProofs | undefined,
): TokenCheck {
  const { clock, issuerKeys, keys, rules, tallies } = dependencies
  return new TokenCheck({
    authority:
      keys === undefined
        ? foreignAuthority(configuration.issuers, clock, issuerKeys)
        : ownAuthority(keys, clock, urls, proofs !== undefined),
    rules,
    recorder,
    clock,
    cacheSize: configuration.tokenCache.size,
    // A sidecar has no directory: its clients are known to their issuers only.
    tallyOf: keys && ((client) => tallies.of(client)),
  })
}
