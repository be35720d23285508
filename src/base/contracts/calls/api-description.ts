/**
 * The API that a deployment offers its clients (C11.3): made once for each configuration from the compiled actions
 * (gateway/describe). The OpenAPI document is made from it. It names no backend and no address of an upstream. Texts are the
 * operator's own, as written: whoever shows them must escape them.
 */
import type { Format } from '../../http/head/accept.ts'
import type { BodySchema } from '../../http/body/body-schema.ts'
import type { JsonValue, ScalarValue } from '../../http/body/json.ts'
import type { FaultCode } from '../../kernel/faults.ts'

export interface ApiDescription {
  readonly title: string
  readonly description: string | undefined
  /** `{base_url}`, without a slash at its end. */
  readonly baseUrl: string
  /** The catalogue of scope values, in its order, but for those that only hidden areas need. */
  readonly scopes: readonly ScopeDescription[]
  /** In the order of the configuration. Areas that are hidden, and those without operations, are left out. */
  readonly areas: readonly AreaDescription[]
}

export interface ScopeDescription {
  readonly name: string
  readonly description: string
  /** Every other value that includes this one, by what it implies. */
  readonly includedIn: readonly string[]
}

export interface AreaDescription {
  readonly name: string
  readonly description: string | undefined
  /** `report-only`: its calls are let through whatever their token says. */
  readonly mode: 'enforce' | 'report-only'
  /** In the order of the configuration: actions, then methods. */
  readonly operations: readonly OperationDescription[]
}

/** One method of an action. GET includes HEAD. */
export interface OperationDescription {
  /** Unique, of `A-Za-z0-9._-`, made of method, level, area and path: other operations do not change it. */
  readonly id: string
  readonly area: string
  /** As configured: `member-detail/{memberId:uuid}`. */
  readonly action: string
  /** The level that its URL, and so the token's target, names. */
  readonly level: 'business' | 'fund'
  readonly method: string
  /** From `/api` on, with its parameters in braces: `/api/1.0/f/{businessCode}/{fundCode}/member-data/…/{memberId}`. */
  readonly path: string
  /** Parameters of the path, from left to right: the codes of business and fund first. */
  readonly parameters: readonly ParameterDescription[]
  /** Declared parameters of the query, in the order of the configuration. */
  readonly query: readonly QueryParameterDescription[]
  readonly mode: 'enforce' | 'report-only'
  /** Any one of these lists satisfies the rule, by all its values. Values that imply them are not listed. */
  readonly scopes: readonly (readonly string[])[]
  readonly summary: string | undefined
  readonly description: string | undefined
  /** In rising order. */
  readonly versions: readonly number[]
  /** The version of the answer to a client that asks for none. */
  readonly defaultVersion: number
  readonly answer: AnswerDescription
  /** Undefined: a call with a body is refused. */
  readonly body: BodyDescription | undefined
  /** Whether a GET may open a websocket. */
  readonly websocket: boolean
  readonly examples: readonly ExampleDescription[]
  /** Every fault that its checks and its backend can raise, in the order of the checks; no others. */
  readonly faults: readonly FaultCode[]
  /** The statuses with which errors of the data service's own may come, with codes of its own (C8.4). */
  readonly ownErrors: readonly number[]
  /** Whether a 4xx of the data service that has no row in the table of faults keeps its status. */
  readonly otherRefusals: boolean
  /** Whether its answers carry `RateLimit` and `RateLimit-Policy`. */
  readonly hasRateHeaders: boolean
}

export interface ParameterDescription {
  readonly name: string
  readonly kind: 'business' | 'fund' | 'own'
  /** Whether it stands for 1 to 32 segments with slashes between them (C3.3); the type is that of each. */
  readonly rest: boolean
  /** `uuid`, `integer`, `/pattern/` as configured; empty for any text. */
  readonly type: string
  /** All values, if the pattern is a list of words. */
  readonly values: readonly string[] | undefined
}

export interface QueryParameterDescription {
  readonly name: string
  /** The schema of one text, number or boolean: it has a type. */
  readonly schema: BodySchema
  readonly required: boolean
  readonly default: ScalarValue | undefined
}

export interface MediaTypeDescription {
  /** `application/json`, `application/vnd.postern.action.v2+xml`. */
  readonly type: string
  readonly format: Format
  readonly version: number
}

export type AnswerDescription =
  | {
      readonly kind: 'envelope'
      readonly types: readonly MediaTypeDescription[]
      /** JSON Schema of `Data`. Undefined: any object. */
      readonly data: BodySchema | undefined
      /** Whether `Data` may be empty although `data` requires members: where the data service answers 204 (C8.6). */
      readonly mayBeEmpty: boolean
      /** XML names of array items, by the name of the array; `Item` for others. */
      readonly items: Readonly<Record<string, string>>
      /** Whether XML answers have the data service's own elements, which follow no published mapping (C7.7). */
      readonly ownXml: boolean
      readonly successes: Successes
    }
  /** Passed through without an envelope. */
  | { readonly kind: 'own'; readonly types: readonly string[]; readonly successes: Successes }

/** A success other than 200. */
export interface Successes {
  /** The data service may answer another 2xx. */
  readonly other: boolean
  /** A conditional request may be answered 304; there may be an `ETag` and a `Last-Modified` then. */
  readonly notModified: boolean
  /** A change may say with `If-Match` which version it is of; its answer may have an `ETag`. */
  readonly precondition: boolean
  /** A request with `Range` may be answered 206, or 416. */
  readonly ranges: boolean
  /** Parts are in units of the data service, not in bytes (C8.8). */
  readonly otherUnits?: boolean
}

export type BodyDescription =
  | {
      readonly kind: 'parsed'
      readonly required: boolean
      /** JSON, XML, and forms. */
      readonly types: readonly string[]
      /** JSON Schema. Undefined: anything. */
      readonly schema: BodySchema | undefined
      /** Whether XML bodies have the data service's own elements (C7.7). */
      readonly ownXml: boolean
      /** The largest body, in bytes. */
      readonly limit: number
    }
  /** Streamed through without being parsed: media types or ranges. */
  | { readonly kind: 'opaque'; readonly types: readonly string[] }

export interface ExampleDescription {
  /** Unique in its operation. */
  readonly name: string
  readonly summary: string | undefined
  readonly version: number
  /** Values of own parameters of the path, by name. */
  readonly parameters: Readonly<Record<string, string>>
  /** Values of declared parameters of the query, by name. */
  readonly query: Readonly<Record<string, ScalarValue>>
  /** The `Data` of the answer. */
  readonly data: JsonValue | undefined
  readonly body: JsonValue | undefined
}

/** Where and how clients get tokens: Postern's own endpoints, or the issuers whose tokens a sidecar accepts. */
export type AuthorizationDescription =
  | {
      readonly kind: 'own'
      readonly issuer: string
      readonly authorizationUrl: string
      readonly tokenUrl: string
      /** `grant_types_supported` of the metadata. */
      readonly grants: readonly string[]
      /** A sentence about tokens that are bound to a key; empty if there are none. */
      readonly note?: string
    }
  | { readonly kind: 'foreign'; readonly issuers: readonly ForeignIssuerDescription[] }

export interface ForeignIssuerDescription {
  readonly name: string | undefined
  readonly issuer: string
  /** Where its metadata is read from; undefined if its keys are configured, and its metadata is never looked at. */
  readonly metadataUrl: string | undefined
}
