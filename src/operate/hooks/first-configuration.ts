/** A source of the configuration that `postern init` writes: the description of a service. */
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import type { Terminal } from '../operation/terminal.ts'
import type { Example, Options } from '../operation/verb.ts'

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
  /** The scopes that change nothing. */
  readonly readScopes: readonly string[]
  readonly areas: Readonly<Record<string, { readonly backend: string; readonly description?: string }>>
  readonly actions: readonly DescribedAction[]
  /** The schemas by name, for the schemas that refer to them. */
  readonly schemas: Readonly<Record<string, BodySchema>>
  /** The path that the service is asked for; undefined: the client's. */
  readonly path: string | undefined
  /** The Host by which the service knows the business. */
  readonly host?: string
  /** Whether it reads the headers with the business that Postern adds. */
  readonly identity?: boolean
  /** Whether an action is of a fund. */
  readonly usesFunds: boolean
  /** Remarks on an action, for people who read the file. */
  readonly remarks?: (action: DescribedAction) => readonly string[]
}

export interface FirstBusiness {
  readonly code: string
  /** The name for people. */
  readonly name: string
}

/** Values of businesses: by code, then by key. */
export type ValuesByBusiness = Readonly<Record<string, Readonly<Record<string, string>>>>

/** The service that a configuration is written for, as its source describes it. */
export interface SourcedService {
  readonly service: DescribedService
  /**
   * The values by which the service knows each business, where it needs them.
   *
   * @throws UsageError if something is missing and nobody can be asked
   */
  readonly valuesOf: (businesses: readonly FirstBusiness[]) => Promise<ValuesByBusiness>
  /** Facts of the description that a configuration cannot express: a line for each. */
  readonly notes: readonly string[]
  /** The same as text for people, in detail or by kind. Empty if there is nothing. */
  readonly told: string
  /** Its operations: as a list for JSON, and as the text of the file next to the configuration. */
  readonly operations: { readonly list: readonly object[]; readonly table: string }
  /** The decisions that are left where nobody could be asked. */
  readonly open: string | undefined
}

/** A source that was read. */
export interface OpenSource {
  /** An address to propose for the service. */
  readonly upstream: string
  /** @param asked who may be asked. @throws SourceError if nothing of it can be served, or an option names what is not there */
  readonly service: (asked: Terminal | undefined) => Promise<SourcedService>
}

/** The source cannot be read, or nothing of it can be served. The message says why. */
export class SourceError extends Error {}

/** Options of `postern init` as they were given. */
export type SourceValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

export interface FirstConfigurationSource {
  /** Options that `postern init` has for it. */
  readonly options: Options
  /** The default address, for the help of `--upstream`. */
  readonly address: string
  readonly notes: readonly string[]
  readonly examples: readonly Example[]
  /** The name of the file that is written next to the configuration. */
  readonly file: string
  /** Whether the options name this source. @throws UsageError if they name none, and say how one is read */
  readonly isNamed: (values: SourceValues) => boolean
  /** @param usual the address of a service that names none. @throws SourceError */
  readonly open: (values: SourceValues, usual: string) => Promise<OpenSource>
}
