import type { Answer } from '../contracts/exchange.ts'
import type { Fault } from '../kernel/faults.ts'
import type { Arrived } from './context.ts'
import type { ClientFailures } from './guessing/failures.ts'
import type { FamiliarNetworks } from './guessing/familiar-networks.ts'
import type { GuessingGuard } from './guessing/guessing.ts'
import type { Consents } from './browser/consents.ts'
import type { SessionCookie, Sessions } from './browser/sessions.ts'
import type { Theme } from './pages/theme.ts'
import type { Codes } from './tokens/codes.ts'
import type { Families } from './tokens/families.ts'
import type { Holders, IdentityDeps } from './dependencies.ts'

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
  readonly theme: Theme
  /** The discovery document, as JSON. */
  readonly metadata: string
}

/** One check or act: takes what is known so far, answers it with what it found out, or throws a fault. */
export type Step<In, Out> = (context: In, dependencies: StepDependencies) => Out | Promise<Out>

/** How an endpoint tells a fault: RFC 6749 JSON, a Basic challenge, a page (which shows the exchange's id, C2.6). */
export type Refusal = (fault: Fault, dependencies: StepDependencies, id: string) => Answer

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

/**
 * Steps in a row, each one taking what the one before gives. A step put before the one that finds out what it needs
 * does not compile: that is how the order of C6.1.0 is kept.
 */
export function flow<A, B>(ab: Step<A, B>): Step<A, B>
export function flow<A, B, C>(ab: Step<A, B>, bc: Step<B, C>): Step<A, C>
export function flow<A, B, C, D>(ab: Step<A, B>, bc: Step<B, C>, cd: Step<C, D>): Step<A, D>
export function flow<A, B, C, D, E>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
): Step<A, E>
export function flow<A, B, C, D, E, F>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
): Step<A, F>
export function flow<A, B, C, D, E, F, G>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
  fg: Step<F, G>,
): Step<A, G>
export function flow(...steps: readonly Step<never, unknown>[]): Step<never, unknown> {
  return async (context, dependencies) => {
    let known: unknown = context
    for (const step of steps) known = await step(known as never, dependencies)
    return known
  }
}
