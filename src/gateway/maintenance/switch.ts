/** What a maintenance switch is: what it closes, and when (C9.1). Apart, so that a command loads no more. */

/** Kinds that have no name, and kinds that are named by code or configuration key. */
export const WHOLE_KINDS = ['service', 'identity'] as const
export const NAMED_KINDS = ['business', 'area', 'backend'] as const

export type ClosureScope =
  | { readonly kind: (typeof WHOLE_KINDS)[number] }
  | { readonly kind: (typeof NAMED_KINDS)[number]; readonly name: string }

/** A switch as an operator sets it (C9.1). Times in milliseconds since the epoch. */
export interface MaintenanceSwitch {
  readonly scope: ClosureScope
  /** Closed from this moment on; from the start if not given. */
  readonly from?: number | undefined
  /** Open again from this moment on; until somebody says so, if not given. */
  readonly until?: number | undefined
  /** Text for clients in place of the fixed one. */
  readonly message?: string | undefined
  /** Retry-After in seconds. If not given: what is left of the window, or, without that, two minutes. */
  readonly retryAfter?: number | undefined
  /** Addresses and CIDR networks that pass. */
  readonly addresses?: readonly string[]
  readonly clients?: readonly string[]
}

/** The texts that `parseClosureScope` reads, as a pattern for schemas. */
export const SCOPE_PATTERN = `^(?:(?:${WHOLE_KINDS.join('|')})|(?:${NAMED_KINDS.join('|')})/[^/]+)$`

/** `service`, `business/ACME`: how a scope is named where one text must do. */
export const scopeText = (scope: ClosureScope): string =>
  'name' in scope ? `${scope.kind}/${scope.name}` : scope.kind

export function parseClosureScope(text: string): ClosureScope | undefined {
  const whole = WHOLE_KINDS.find((kind) => kind === text)
  if (whole !== undefined) return { kind: whole }
  const [kind, ...rest] = text.split('/')
  const named = NAMED_KINDS.find((word) => word === kind)
  const name = rest.join('/')
  return named === undefined || name === '' ? undefined : { kind: named, name }
}

export const isInForce = ({ from, until }: MaintenanceSwitch, now: number): boolean =>
  (from === undefined || from <= now) && (until === undefined || now < until)
