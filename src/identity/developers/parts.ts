import type { ApiDescription } from '../../contracts/api-description.ts'
import type { Catalogue } from '../../config/scopes/catalogue.ts'
import type { IdentityConfig } from '../schema.ts'
import type { Theme } from '../pages/theme.ts'
import type { SampleLogin } from './schema.ts'

/** What a deployment tells those who write clients. */
export interface DeveloperOffer {
  readonly api: ApiDescription
  /** Where the description for programs is (C11.3); undefined where it is not offered. */
  readonly openapiUrl: string | undefined
  /** An https or http URL, or an e-mail address. */
  readonly contact: string | undefined
  /** The login that the commands use, if they are to work as they stand. */
  readonly sample: SampleLogin | undefined
}

/** What the pages are made of: everything that they say comes from here or from tables in the code. */
export interface DeveloperParts extends DeveloperOffer {
  readonly catalogue: Catalogue
  readonly identity: IdentityConfig
  readonly theme: Theme
  /** The discovery document (C6.3.2). */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** An address of the discovery document. */
export const addressOf = ({ metadata }: Pick<DeveloperParts, 'metadata'>, member: string): string =>
  String(metadata[member])
