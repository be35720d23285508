/** Compiles one configuration into everything that a decision reads. A reload compiles another and swaps the whole. */
import type { Configuration } from '../settings/configuration.ts'
import type { ApiDescription } from '../contracts/api-description.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Places } from '../contracts/places.ts'
import { DirectoryMethods } from '../directory/people.ts'
import { LayeredPlaces } from '../directory/places.ts'
import { changingScopes } from '../gateway/compile-actions.ts'
import { compileFaultRenderer, type FaultRenderer } from '../gateway/represent.ts'
import type { Runtime } from '../gateway/runtime.ts'
import { TokenCheck } from '../gateway/token-check.ts'
import { compileNegotiation } from '../http/accept.ts'
import { compileAuthorities, type Authorities } from '../http/request-target.ts'
import { Cors } from '../http/cors.ts'
import type { ReadyDocument } from '../http/entity-tag.ts'
import { openIdentity, type Identity } from '../identity/identity.ts'
import { userinfo } from '../identity/claims.ts'
import { createTokenVerifier } from '../keys/token-verifier.ts'
import type { ServiceUrls } from '../server/schema.ts'
import { describedApi, developerOffer, openapiOf } from './described-api.ts'
import type { Dependencies, Parts } from './parts.ts'
import { peopleOf } from './people.ts'
import { foreignAuthority, ownAuthority } from './token-authorities.ts'

/** What the public listener's doors serve. */
export interface Service {
  readonly parts: Parts
  readonly runtime: Runtime
  /** Absent in a sidecar. */
  readonly identity: Identity | undefined
  readonly authorities: Authorities
  readonly renderFault: FaultRenderer
  /** What clients are told of the API (C11.3). */
  readonly description: ApiDescription
  /** The same as an OpenAPI document; undefined if there is none (`openapi: off`). */
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
  const tokens = openTokenCheck(parts, dependencies, urls, recorder)
  const description = describedApi(parts, urls)
  const identity = openOwnIdentity(parts, dependencies, urls, tokens, recorder, description)
  const runtime: Runtime = Object.freeze({
    ...dependencies,
    actions: parts.actions.table,
    reportOnly: parts.actions.reportOnly,
    negotiation,
    tokens,
    places: placesOf(parts, dependencies),
    userinfo: identity && userinfo(identity.dependencies),
    recorder,
    baseUrl: urls.baseUrl,
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
    renderFault: compileFaultRenderer(negotiation, urls.baseUrl),
    description,
    document: openapiOf(configuration, description, identity?.dependencies.metadata),
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
  issuedTokens: TokenCheck,
  recorder: Recorder,
  description: ApiDescription,
): Identity | undefined {
  const { configuration, directory, catalogue } = parts
  const { keys, clock } = dependencies
  if (keys === undefined) return undefined
  return openIdentity({
    ...dependencies,
    ...peopleOf(parts, { ...dependencies, recorder }),
    places: new LayeredPlaces(directory.places, dependencies.storedPlaces),
    catalogue,
    signer: keys,
    publicKeys: keys,
    tokenVerifier: createTokenVerifier(keys, clock),
    deriver: keys,
    issuedTokens,
    recorder,
    urls: { issuer: urls.authUrl, api: urls.baseUrl },
    config: configuration.identity,
    strictHeaderNames: configuration.server.strictHeaderNames,
    anySchemeCase: configuration.identity.strictRfc6749,
    changingScopes: changingScopes(configuration.actions, catalogue),
    longestTarget: configuration.server.limits.target,
    clientMethods: new DirectoryMethods({
      configured: directory.clients.values(),
      store: dependencies.store,
      clock,
    }),
    cors: corsOf(configuration),
    developers: developerOffer(configuration, description),
  })
}

const corsOf = ({ server: { cors } }: Configuration): Cors | undefined => cors && new Cors(cors)

/** Accepts, in a sidecar, the tokens of the configured issuers; otherwise our own (C11.2). */
function openTokenCheck(
  { configuration }: Parts,
  dependencies: Dependencies,
  urls: ServiceUrls,
  recorder: Recorder,
): TokenCheck {
  const { clock, issuerKeys, keys, revocations, tallies } = dependencies
  return new TokenCheck({
    authority:
      keys === undefined
        ? foreignAuthority(configuration.issuers, clock, issuerKeys)
        : ownAuthority(keys, clock, urls),
    revocations,
    recorder,
    clock,
    cacheSize: configuration.tokenCache.size,
    // A sidecar has no directory: its clients are known to their issuers only.
    tallyOf: keys && ((client) => tallies.of(client)),
  })
}
