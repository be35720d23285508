/** Endpoints that an extension adds to those of identity (C6). */
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type { IdentityConfig } from '../dependencies/schema.ts'
import type { Theme } from '../pages/theme.ts'
import type { Endpoint } from './endpoint.ts'

/** The parts that they are made of, once for each configuration. */
export interface EndpointParts {
  readonly catalogue: Catalogue
  readonly identity: IdentityConfig
  readonly theme: Theme
  /** The discovery document (C6.3.2). */
  readonly metadata: Readonly<Record<string, unknown>>
}

export interface AddedEndpoints {
  readonly endpoints: readonly Endpoint[]
  /** A link on the page of an unknown path (C2.3), with the issuer's own path. */
  readonly link: { readonly href: string; readonly text: string }
}

export type MakeEndpoints = (parts: EndpointParts) => AddedEndpoints
