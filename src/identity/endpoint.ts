import type { Answer } from '../contracts/exchange.ts'
import type { Fault } from '../kernel/faults.ts'
import type { Arrived } from './context.ts'
import type { IdentityDeps } from './deps.ts'
import type { ClientFailures } from './guessing/client-failures.ts'
import type { FamiliarNetworks } from './guessing/familiar-networks.ts'
import type { GuessingGuard } from './guessing/guessing.ts'
import type { Holders } from './holders.ts'
import type { Consents } from './browser/consents.ts'
import type { SessionCookie } from './browser/session-cookie.ts'
import type { Sessions } from './browser/sessions.ts'
import type { Theme } from './pages/theme.ts'
import type { Codes } from './tokens/codes.ts'
import type { Families } from './tokens/families.ts'

/** What every step may use: the other rooms' contracts, and identity's own state. */
export interface StepDependencies extends IdentityDeps {
  readonly people: Holders
  readonly families: Families
  readonly codes: Codes
  readonly guessing: GuessingGuard
  readonly networks: FamiliarNetworks
  readonly clientFailures: ClientFailures
  readonly sessions: Sessions
  readonly consents: Consents
  readonly cookie: SessionCookie
  readonly look: Theme
  /** The discovery document, as JSON. */
  readonly metadata: string
}

/** One check or act: takes what is known so far, answers it with what it found out, or throws a fault. */
export type Step<In, Out> = (context: In, room: StepDependencies) => Out | Promise<Out>

/** How an endpoint tells a fault: RFC 6749 JSON, a Basic challenge, a page (which shows the exchange's id, C2.6). */
export type Refusal = (fault: Fault, room: StepDependencies, id: string) => Answer

/** A row of THE MATRIX in endpoints.ts. */
export interface Endpoint {
  readonly name: string
  /** Its canonical path for an issuer whose URL has this path (empty, or `/…` without a trailing slash). */
  readonly path: (issuerPath: string) => string
  readonly methods: readonly string[]
  /** Whether the identity switch closes it; discovery and keys always answer (C9.2). */
  readonly closes: boolean
  /** Whether pages of other origins that may call the API (C4.18) may call this: no page, and no server's business. */
  readonly crossOrigin?: true
  readonly steps: Step<Arrived, Answer>
  readonly refuse: Refusal
  /** The member of the discovery document that holds its URL. */
  readonly announcedAs?: string
  /** How clients authenticate there, for the discovery document: `…_auth_methods_supported` (RFC 8414 §2). */
  readonly authMethods?: readonly string[]
}
