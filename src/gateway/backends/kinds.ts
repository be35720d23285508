/** The type of an open backend, and what extensions add to backends: further kinds, and upgrades. */
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import type { TSchema } from '../../base/config/schema.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import type { FundRegistry } from '../../base/contracts/people/places.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { ForwardingDependencies } from './forward/compile-forwarding.ts'
import type { ForwardedOperation } from './forward/compile-request.ts'
import type { HttpBackend } from './forward/http.ts'
import type { BoundNames } from './forward/kept-out.ts'
import type { HttpBackendRules } from './forward/rules.ts'
import type { OperationUpstream } from './forward/schema/schema.ts'

/** A backend, and the functions that compile operations' views of it. Absent where these cannot say anything different. */
export interface OpenedBackend extends Backend {
  readonly forOperation?: (operation: ForwardedOperation, problems: Problems) => Backend
  /** The view for calls of a report-only area that match no action. Reports a problem if there can be none. */
  readonly forUnmatched?: (area: string, bound: BoundNames, problems: Problems) => Backend
  /** The names by which calls of an operation tell the business. @param upstream its section */
  readonly boundNames?: (upstream: OperationUpstream | undefined) => readonly string[]
  /** The backend whose operations keep these names out. */
  readonly service?: string
}

export interface BackendDependencies extends ForwardingDependencies {
  /** Gets the funds that a backend creates. */
  readonly funds: FundRegistry | undefined
  /** Most bytes of an answer that is held: `server.limits.answer`. */
  readonly answerLimit: number
  readonly moduleFailed: (backend: string, thrown: unknown, call: string | undefined) => void
  readonly addedBackends: AddedBackends
}

/** A backend of an added kind. */
export interface AddedBackend extends Backend {
  /** Where it runs around one that forwards: the same backend around a view of that one, which is what an operation changes of it. */
  readonly around?: (view: HttpBackend) => Backend
}

/** The section of a backend, with `kind`; read by the schema of its kind. */
type Section = { readonly kind: string }

/** A kind of backend. */
export interface AddedKind {
  readonly schema: TSchema
  /**
   * Reports a problem, and gives undefined, if the backend cannot be used.
   * @param under the backend that its section names in `over`; absent for one that runs around no other
   */
  readonly open: (
    name: string,
    config: Section,
    problems: Problems,
    dependencies: BackendDependencies,
    under?: HttpBackend,
  ) => Promise<AddedBackend | undefined>
  /**
   * A digest of its files: as they are `now`, or as they were when they were `loaded`. Before it was opened once, its files are not
   * known.
   */
  readonly contents: (config: Section, when: 'now' | 'loaded') => Promise<string>
}

/** An operation that allows an upgrade. */
export interface UpgradedOperation {
  readonly method: string
  /** The method that its upstream is sent, if the operation says one. */
  readonly upstreamMethod: string | undefined
  readonly backend: Pick<Backend, 'upgrade'>
  /** The path of its section. */
  readonly path: KeyPath
}

/** Connections that change to another protocol (RFC 9110 §7.8), by way of backends of kind `stream`. */
export interface AddedUpgrade {
  /** Whether calls of an operation may ask for it. @param operation its section */
  readonly isAllowed: (operation: object) => boolean
  /** Reports the problems of an operation that allows it. */
  readonly check: (operation: UpgradedOperation, problems: Problems) => void
  /** Opens a backend of kind `stream` that can upgrade. @param config its section */
  readonly open: (config: Section, rules: HttpBackendRules, clock: Clock) => Promise<HttpBackend>
}

/** The kinds of backends, and the upgrade, that extensions add. */
export interface AddedBackends {
  /** By `kind`. */
  readonly kinds: ReadonlyMap<string, AddedKind>
  readonly upgrade: AddedUpgrade | undefined
}
