import type { Call, KeptOut, Payload } from '../../../base/contracts/calls/backend.ts'
import type { JsonPointer } from '../../../base/http/body/json.ts'
import type { HeaderText } from '../../../base/http/head/header-text.ts'
import type { KeptNames } from '../../../base/http/head/query.ts'
import type { PlainXmlRules } from '../../../base/http/xml/plain-document.ts'
import type { UpstreamTimeouts } from '../../upstream/request.ts'
import type { RequestTemplates } from '../templates/places.ts'
import type { XmlSection } from './schema/answer-schema.ts'
import type { AnswerTypes } from './response/answer-types.ts'
import type { Credentials } from './auth/credentials.ts'
import type { TokenSources } from './auth/token-credentials.ts'
import type { OfferedOperation } from './target/offered-operations.ts'
import type { RedirectRules } from './target/redirects.ts'
import type { OwnErrors } from './response/own-errors.ts'
import type { TargetRules, VaryingRules } from './target/varying-targets.ts'

/** The rules for requests to an upstream (C8.7). */
export interface RequestRules extends RequestTemplates {
  /** The only names, decoded, of a client's query that pass; undefined: all that may. */
  readonly queryOnly: readonly string[] | undefined
  readonly strictQuery: boolean
  /** The only headers of a client that pass, in lower case; undefined: all that may. */
  readonly requestHeaders: ReadonlySet<string> | undefined
  /** Undefined: the client's method. */
  readonly method: string | undefined
  readonly timeouts: UpstreamTimeouts
  /** Further attempts at a call that may be repeated (C8.5). */
  readonly retries: number
}

/** The rules for a request that a section sets. The others are the backend's, or the request stays as the client sent it. */
export type RequestOverrides = Partial<Omit<RequestRules, 'timeouts'>> & {
  readonly timeouts?: Partial<UpstreamTimeouts>
}

export interface XmlSetting {
  /** The section with the keys of the backend that an operation leaves out. */
  readonly section: XmlSection
  /** Undefined: the dialect is Postern's. */
  readonly rules: PlainXmlRules | undefined
}

/** The rules that an operation may set differently from its backend (C8.7). */
export interface ExchangeRules extends RequestRules {
  readonly forwardAuthorization: boolean
  readonly credentials: Credentials | undefined
  readonly format: 'json' | 'xml'
  readonly payload: Payload
  /** How answers of other media types are read; undefined: there are none (C8.8). */
  readonly types: AnswerTypes | undefined
  readonly xml?: XmlSetting | undefined
  /** Which parts of the data may be asked for besides those of the upstream's own bytes (C8.8). */
  readonly ranges: 'bytes' | 'verbatim'
  /** Whether the upstream learns where a call came from (C8.2). */
  readonly forwarded: 'on' | 'off'
  /** Response headers that pass beyond the defaults. */
  readonly responseHeaders: readonly string[]
  /** Where errors are in the upstream's answers; undefined: in envelopes of a 4xx only (C8.8). */
  readonly errors: OwnErrors | 'problem' | undefined
  /** Statuses that stand for the upstream's own 4xx; undefined: none (C8.8). */
  readonly errorStatus: ReadonlyMap<number, number> | undefined
  /** Redirects that are followed; undefined: none (C8.8). */
  readonly redirects: RedirectRules | undefined
  /** The part of a bare answer that is the data; undefined: all of it (C8.8). */
  readonly data: JsonPointer | undefined
  /** Whether calls need the values of their business (C8.7). */
  readonly namesValues?: boolean
  /** Names of the business, kept out of what clients send; undefined: there are none. */
  readonly keptOut?: (KeptOut & { readonly query: KeptNames }) | undefined
  /** The operations that the backend answers, where URLs are rewritten to theirs; undefined: none (C8.8). */
  readonly operations: readonly OfferedOperation[] | undefined
}

/** Headers that state the caller to an upstream (C8.2). */
export type Identify = (call: Call) => HeaderText | Promise<HeaderText>

export interface HttpBackendRules extends ExchangeRules, TargetRules {
  readonly name: string
  readonly vendor: string
  /** Where target or host differ from call to call. */
  readonly varying?: VaryingRules | undefined
  /** Whether a secret says where calls go: then neither log nor error tells it. */
  readonly conceals?: boolean
  readonly identify: Identify
  readonly sources: TokenSources
}
