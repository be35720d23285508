/** The OpenAPI document of the API (C11.3), as far as the pages read it. */
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import type { JsonValue, ScalarValue } from '../../base/http/body/json.ts'

interface Reference {
  readonly $ref: string
}

/** A schema of the configuration, and what the document says by other words. */
export interface DocumentSchema extends BodySchema {
  readonly properties?: Readonly<Record<string, DocumentSchema>>
  readonly items?: DocumentSchema
  readonly anyOf?: readonly DocumentSchema[]
  readonly default?: ScalarValue
  /** A schema that fits every value, so that no value is allowed. */
  readonly not?: object
}

interface Example {
  readonly value: JsonValue
}

type Examples = Readonly<Record<string, Example | Reference>>

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly description?: string
  readonly required?: boolean
  readonly schema: DocumentSchema
  readonly examples?: Examples
  readonly 'x-postern-segment'?: DocumentSchema
}

interface Media {
  readonly schema?: DocumentSchema
  readonly examples?: Examples
  /** The data service's own elements, which the document does not tell. */
  readonly 'x-postern-own-xml'?: true
}

type Content = Readonly<Record<string, Media>>

interface Response {
  readonly content?: Content
  readonly 'x-postern-codes'?: readonly string[]
}

interface RequestBody {
  /** Absent where the body is passed on unread. */
  readonly required?: boolean
  readonly content: Content
  readonly 'x-postern-limit'?: number
}

interface OperationNode {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly [area: string]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly (Parameter | Reference)[]
  readonly requestBody?: RequestBody
  readonly responses: Readonly<Record<string, Response | Reference>>
  readonly 'x-postern-action': string
  readonly 'x-postern-target': 'business' | 'fund'
  readonly 'x-postern-mode'?: 'report-only'
  readonly 'x-postern-default-version'?: number
  readonly 'x-postern-items'?: Readonly<Record<string, string>>
  readonly 'x-postern-examples'?: Readonly<Record<string, NamedExample>>
  readonly 'x-postern-path'?: string
}

interface NamedExample {
  readonly summary?: string
  readonly version: number
}

type ByMethod<Value> = Readonly<Record<string, Value>>

interface PathItem extends ByMethod<unknown> {
  readonly 'x-postern-operations'?: ByMethod<OperationNode>
  readonly 'x-postern-variants'?: ByMethod<readonly OperationNode[]>
}

interface Root {
  readonly info: {
    readonly title: string
    readonly description: string
    readonly contact: { readonly url?: string; readonly email?: string }
  }
  readonly servers: readonly [{ readonly url: string }]
  readonly tags: readonly Area[]
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components: {
    readonly securitySchemes?: Readonly<Record<string, { readonly flows: Readonly<Record<string, Flow>> }>>
  }
}

interface Flow {
  readonly scopes: Readonly<Record<string, string>>
}

export interface Area {
  readonly name: string
  readonly description: string
  readonly 'x-postern-mode'?: 'report-only'
}

/** Descriptions have `<` as `&lt;`, so that no viewer of Markdown takes it for HTML (C11.3.6). */
export const plain = (description: string): string => description.replaceAll('&lt;', '<')

export class ApiDocument {
  readonly #root: Root
  readonly operations: readonly DocumentedOperation[]

  constructor(json: string) {
    this.#root = JSON.parse(json) as Root
    this.operations = Object.entries(this.#root.paths).flatMap(([path, item]) =>
      this.#operationsAt(path, item),
    )
  }

  #operationsAt(path: string, item: PathItem): readonly DocumentedOperation[] {
    const { 'x-postern-operations': further = {}, 'x-postern-variants': variants = {}, ...known } = item
    return Object.entries({ ...known, ...further }).flatMap(([key, node]) => {
      const method = key.toUpperCase()
      const nodes = variants[method] ?? [node as OperationNode]
      return nodes.map((each) => new DocumentedOperation(method, each['x-postern-path'] ?? path, each, this))
    })
  }

  get info(): Root['info'] {
    return this.#root.info
  }

  get baseUrl(): string {
    return this.#root.servers[0].url
  }

  get areas(): readonly Area[] {
    return this.#root.tags
  }

  /** The scope values that the pages may tell, in the order of the configuration. */
  get scopes(): readonly string[] {
    const [scheme] = Object.values(this.#root.components.securitySchemes ?? {})
    return Object.keys(Object.values(scheme?.flows ?? {})[0]?.scopes ?? {})
  }

  operationsOf(area: string): readonly DocumentedOperation[] {
    return this.operations.filter((operation) => operation.area === area)
  }

  /** The target of a reference; anything else is returned as it is. */
  resolved<Node extends object>(node: Node | Reference): Node {
    if (!('$ref' in node) || typeof node.$ref !== 'string') return node as Node
    const steps = node.$ref.replace('#/', '').split('/')
    return steps.reduce<unknown>(
      (at, step) => (at as Readonly<Record<string, unknown>>)[step],
      this.#root,
    ) as Node
  }
}

/** The name of a schema that has one, and so is a component of the document. */
export const schemaName = ({ $ref }: DocumentSchema): string | undefined =>
  $ref?.slice($ref.lastIndexOf('/') + 1)

/** The parts of a successful answer: the envelope around `Data`, or a form of the operation's own. */
export interface DescribedAnswer {
  readonly types: readonly string[]
  /** Undefined without an envelope. */
  readonly data: DocumentSchema | undefined
  /** Whether `Data` may be empty although its schema requires members. */
  readonly mayBeEmpty: boolean
}

/** One example of an operation: a request, and its answer. */
export interface WholeExample extends NamedExample {
  readonly body: JsonValue | undefined
  /** The `Data` of the answer. */
  readonly data: JsonValue | undefined
  /** The value of a parameter of the path or of the query. */
  readonly valueOf: (parameter: Parameter) => JsonValue | undefined
}

/** The type of an answer in JSON by version (C7.1). */
const VERSION = /\/vnd\.[^/]+\.v(\d+)\+json$/

/** A method of an action, with its references resolved. */
export class DocumentedOperation {
  readonly method: string
  readonly path: string
  readonly node: OperationNode
  /** Any one of these lists is enough, by all its values. */
  readonly scopes: readonly (readonly string[])[]
  readonly #document: ApiDocument

  constructor(method: string, path: string, node: OperationNode, document: ApiDocument) {
    this.method = method
    this.path = path
    this.node = node
    // In a report-only area one alternative is no token: an empty object.
    this.scopes = node.security.flatMap((scheme) => Object.values(scheme))
    this.#document = document
  }

  get id(): string {
    return this.node.operationId
  }

  get area(): string {
    return this.node.tags[0]
  }

  /** How many parameters of the path name whose data it is: the business, or the business and the fund. */
  get places(): number {
    return this.node['x-postern-target'] === 'fund' ? 2 : 1
  }

  parametersIn(place: Parameter['in']): readonly Parameter[] {
    const all = this.node.parameters.map((each) => this.#document.resolved(each))
    return all.filter((parameter) => parameter.in === place)
  }

  get answer(): DescribedAnswer {
    const content = this.#success
    const types = Object.keys(content)
    const described = Object.values(content).find(({ schema }) => schema !== undefined)?.schema
    if (described === undefined) return { types, data: undefined, mayBeEmpty: false }
    const data = this.#document.resolved(described).properties?.['Data'] ?? {}
    return { types, data: data.anyOf?.[0] ?? data, mayBeEmpty: data.anyOf !== undefined }
  }

  get #success(): Content {
    return this.#document.resolved(this.node.responses['200'] ?? {}).content ?? {}
  }

  /** By version, in rising order, the type of an answer in JSON that has it. Empty without an envelope. */
  get versions(): ReadonlyMap<number, string> {
    const named = Object.entries(this.#success).flatMap(([type, { schema }]) => {
      const [, version] = VERSION.exec(type) ?? []
      return version === undefined || schema === undefined ? [] : [[Number(version), type] as const]
    })
    return new Map(named)
  }

  /** Whether a client can ask for a version that is not the usual first one. */
  get isVersioned(): boolean {
    return [...this.versions.keys()].some((version) => version !== 1)
  }

  /** The version of the answer to a client that asks for none. */
  get defaultVersion(): number | undefined {
    return this.node['x-postern-default-version'] ?? [...this.versions.keys()][0]
  }

  /** Whether XML follows from JSON (C7.5). */
  isMapped(of: 'answer' | 'body'): boolean {
    const content = of === 'answer' ? this.#success : (this.node.requestBody?.content ?? {})
    return !Object.values(content).some((media) => media['x-postern-own-xml'])
  }

  get examples(): readonly WholeExample[] {
    const named = Object.entries(this.node['x-postern-examples'] ?? {})
    return named.map(([name, example]) => {
      const valueIn = (examples: Examples | undefined): JsonValue | undefined => {
        const found = examples !== undefined && Object.hasOwn(examples, name) ? examples[name] : undefined
        return found === undefined ? undefined : this.#document.resolved(found).value
      }
      const answer = valueIn(this.#success[this.versions.get(example.version) ?? '']?.examples)
      return {
        ...example,
        body: valueIn(this.node.requestBody?.content['application/json']?.examples),
        data: (answer as { readonly Data?: JsonValue } | undefined)?.Data,
        valueOf: (parameter) => valueIn(parameter.examples),
      }
    })
  }

  /** The failures of Postern's own, as `API_NOT_FOUND 404`, by status. */
  get failures(): readonly string[] {
    return Object.entries(this.node.responses).flatMap(([status, response]) =>
      (this.#document.resolved(response)['x-postern-codes'] ?? []).map((code) => `${code} ${status}`),
    )
  }
}
