/** What an extension may add to Postern: one literal, in `extension.ts` of its folder. Its work is loaded by `import()`. */
import type { OpenLogoutNotices } from '../../identity/dependencies/logouts.ts'
import type { PeopleSource } from '../../identity/directory/records/people-source.ts'
import type { FindOpaqueTokens } from '../../identity/keys/issuers/opaque-tokens.ts'
import type { MakeEndpoints } from '../../identity/steps/added-endpoints.ts'
import type { AddedCounter } from '../watch/metrics/families.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { AddedSettings } from '../settings/settings.ts'
import type { AddedCommand } from './added-command.ts'
import type { AdminOperation } from '../operation/operation.ts'
import type { TrailOpener } from './kept-trail.ts'
import type { FirstConfigurationSource } from './first-configuration.ts'
import type { OpenSecurityProfile } from './security-profile.ts'

/** The facts about the API that an extension may tell clients. */
export interface PublishedApi {
  /** The areas that are described, in their order. */
  readonly areas: readonly string[]
  /** The OpenAPI document as JSON (C11.3). Where `openapi: off` keeps it unserved, each call makes it, and nothing keeps it. */
  readonly document: () => string
  /** Where it is served; undefined with `openapi: off`. */
  readonly url: string | undefined
}

/** Endpoints that tell clients of the API, which is described once the public addresses are known. */
export type EndpointsOfApi = (api: PublishedApi) => MakeEndpoints

export interface Extension {
  /** A source of the configuration that `postern init` writes (C10). */
  readonly firstConfiguration?: FirstConfigurationSource
  /** Keeps the trail (C12). One extension has it at most; the same one has `settings.trail`. */
  readonly trail?: () => Promise<TrailOpener>
  /** Operations of the admin API. Those with command lines are verbs of its own commands too. */
  readonly operations?: () => Promise<readonly AdminOperation[]>
  /** Commands, by name. */
  readonly commands?: Readonly<Record<string, AddedCommand>>
  /** Keys of the configuration. */
  readonly settings?: AddedSettings
  /** Endpoints at `{auth_url}` (C6). Undefined where a configuration has none of them. */
  readonly endpoints?: (configuration: Configuration) => Promise<EndpointsOfApi> | undefined
  /** People that live elsewhere. A configuration has one such source at most. */
  readonly people?: PeopleSource
  /** Tells clients that a login has ended (C6.3.3a). One extension has it at most. */
  readonly logouts?: OpenLogoutNotices
  /** Protects clients and tokens by more than secrets (C4.4a). One extension does at most. */
  readonly security?: () => Promise<OpenSecurityProfile>
  /** Counters of identity (C11.1). */
  readonly counters?: readonly AddedCounter[]
  /** How opaque tokens of a foreign issuer are verified (C11.2). */
  readonly opaqueTokens?: FindOpaqueTokens
}
