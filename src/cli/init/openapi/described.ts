import type { BodySchema } from '../../../base/http/body/body-schema.ts'

// What the configuration of a service's areas and actions is made of, as `postern init` writes it.

export type Level = 'business' | 'fund'

/** A method of an action, as in the configuration. */
export interface DescribedMethod {
  readonly summary?: string
  readonly description?: string
  readonly scopes: { readonly any: readonly string[] } | { readonly all: readonly string[] }
  readonly items?: Readonly<Record<string, string>>
  readonly parameters?: Readonly<
    Record<string, Omit<BodySchema, 'required'> & { readonly required?: boolean }>
  >
  readonly body?: {
    readonly required?: false
    readonly schema?: BodySchema
    readonly types?: Readonly<Record<string, 'json'>>
  }
  readonly consumes?: readonly string[]
  readonly produces?: readonly string[]
  readonly data?: BodySchema
  readonly upstream?: {
    readonly path?: string
    readonly query?: Readonly<Record<string, string>>
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: {
      readonly format?: 'form'
      readonly type?: string
      readonly set?: Readonly<Record<string, string>>
    }
    readonly types?: Readonly<Record<string, 'json'>>
  }
}

/** An action, as in the configuration. */
export interface DescribedAction {
  readonly level: Level
  readonly area: string
  readonly action: string
  readonly methods: Readonly<Record<string, DescribedMethod>>
}

/** The sections of the configuration that depend on the service. */
export interface DescribedService {
  readonly scopes: Readonly<
    Record<string, { readonly description: string; readonly implies?: readonly string[] }>
  >
  /** Those that change nothing. */
  readonly readScopes: readonly string[]
  readonly areas: Readonly<Record<string, { readonly backend: string; readonly description?: string }>>
  readonly actions: readonly DescribedAction[]
  /** By name, for those that refer to them. */
  readonly schemas: Readonly<Record<string, BodySchema>>
  /** The path that the service is asked for; undefined: the client's. */
  readonly path: string | undefined
  /** The Host by which the service knows the business. */
  readonly host?: string
  /** Whether it reads the headers with the business that Postern adds. */
  readonly identity?: boolean
  /** Whether an action is of a fund. */
  readonly usesFunds: boolean
  /** What people who read the file are told of an action. */
  readonly remarks?: (action: DescribedAction) => readonly string[]
}
