import type { ExampleDescription } from '../../base/contracts/calls/api-description.ts'
import { PLAIN_TYPES } from '../../base/http/head/accept.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import { type FaultRow, FAULTS, type WireCode } from '../../base/kernel/fault-table.ts'
import type { FaultCode } from '../../base/kernel/faults.ts'
import {
  type Components,
  type JsonText,
  mergedText,
  type Node,
  objectText,
  type Reference,
} from './components.ts'
import { classWords, type NamedOperation } from './names.ts'
import { schemaNode } from './schemas.ts'

const ROOT = { name: 'ApiResponse' }

const envelope = (errors: Node, data: Node | Reference | BodySchema): Node => ({
  type: 'object',
  required: ['Errors', 'Data'],
  properties: { Errors: errors, Data: data },
  xml: ROOT,
})

/** An empty `Data`: failures have it, and answers of a data service without a body (C8.6). */
const noData = (components: Components): Reference =>
  components.share('schemas', 'NoData', () => ({
    type: 'object',
    description: 'An object without members.',
    maxProperties: 0,
  }))

const noErrors = (components: Components): Node => ({
  type: 'array',
  maxItems: 0,
  items: errorSchema(undefined, components),
  xml: { wrapped: true },
})

/** The envelope of a success, with `Data` as the operation describes it. */
function successSchema(operation: NamedOperation, components: Components): Reference {
  const { id, name, answer } = operation
  if (answer.kind === 'own' || answer.data === undefined)
    return components.share('schemas', 'AnySuccess', () => envelope(noErrors(components), { type: 'object' }))
  const { mayBeEmpty } = answer
  const make = (): Node => {
    const data = dataSchema(operation, answer, components)
    return envelope(noErrors(components), mayBeEmpty ? { anyOf: [data, noData(components)] } : data)
  }
  return components.share('schemas', `${name}Response`, make, `response ${id}`)
}

/** A component of its own, so that generated clients have a type of this name. */
function dataSchema(
  { id, name, method }: Pick<NamedOperation, 'id' | 'name' | 'method'>,
  { data = {}, items }: Pick<Enveloped, 'data' | 'items'>,
  components: Components,
): Node | Reference {
  const node = { type: 'object', ...schemaNode(data, items, components) }
  if (data.$id !== undefined) return node
  return components.share('schemas', method === 'GET' ? name : `${name}Result`, () => node, `data ${id}`)
}

type Enveloped = Extract<NamedOperation['answer'], { kind: 'envelope' }>

/** A schema that has a name in the configuration stands for itself. */
export function bodySchema(
  schema: BodySchema,
  { id, name, answer }: NamedOperation,
  components: Components,
): unknown {
  const make = (): unknown => schemaNode(schema, answer.kind === 'envelope' ? answer.items : {}, components)
  return schema.$id === undefined ? components.share('schemas', `${name}Request`, make, `body ${id}`) : make()
}

/** @param codes those that it may have; undefined: any, because a data service's own errors pass (C8.4) */
const failureSchema = (codes: readonly WireCode[] | undefined, components: Components): Reference =>
  components.share('schemas', `${namesOf(codes)}Failure`, () =>
    envelope(
      { type: 'array', minItems: 1, items: errorSchema(codes, components), xml: { wrapped: true } },
      noData(components),
    ),
  )

const errorSchema = (codes: readonly WireCode[] | undefined, components: Components): Reference =>
  components.share('schemas', `${namesOf(codes).replace(/Error$/, '')}Error`, () => ({
    type: 'object',
    required: ['Code', 'Message'],
    properties: {
      Code: { type: 'string', description: 'For programs.', ...(codes && { enum: codes }) },
      Message: { type: 'string', description: 'For people.' },
    },
    xml: { name: 'Error' },
  }))

/** `API_NOT_FOUND` is `NotFound`. */
const namesOf = (codes: readonly WireCode[] | undefined): string =>
  codes === undefined
    ? 'Any'
    : codes.map((code) => classWords(code.replace(/^API_/, '').toLowerCase())).join('Or')

const HEADERS = {
  'X-Request-Id': ['Names this answer. Quote it when you ask for help.', { type: 'string' }],
  'Retry-After': ['Seconds to wait before the next try.', { type: 'integer', minimum: 1 }],
  'WWW-Authenticate': [
    'A challenge (RFC 6750, RFC 9449): what is wrong with the token, or with the proof of its key.',
    { type: 'string' },
  ],
  Allow: ['The methods that are offered, with commas between them.', { type: 'string' }],
  RateLimit: ['What is left of the client’s rate, and when it is full again.', { type: 'string' }],
  'RateLimit-Policy': ['The client’s rate.', { type: 'string' }],
  ETag: ['Names this version of the data, for `If-None-Match` and `If-Match`.', { type: 'string' }],
  'Last-Modified': ['When the data was last changed.', { type: 'string' }],
  'Content-Range': ['Which part of the data this is, or its length.', { type: 'string' }],
} as const satisfies Record<string, readonly [description: string, schema: Node]>

type HeaderName = keyof typeof HEADERS

const BY_STATUS: Readonly<Record<string, readonly HeaderName[]>> = {
  '206': ['Content-Range'],
  '304': ['ETag'],
  '401': ['WWW-Authenticate'],
  '405': ['Allow'],
  '416': ['Content-Range'],
  '429': ['Retry-After'],
  '503': ['Retry-After'],
}

const RATE: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy']
const VALIDATORS: readonly HeaderName[] = ['ETag', 'Last-Modified']

/** Headers that every answer of their statuses has. The others depend on the caller or on the data service. */
const REQUIRED: ReadonlySet<string> = new Set<HeaderName>([
  'X-Request-Id',
  'Retry-After',
  'WWW-Authenticate',
  'Allow',
])

const headersOf = (status: string, more: readonly HeaderName[], components: Components): Node => {
  const names = [...new Set<HeaderName>(['X-Request-Id', ...(BY_STATUS[status] ?? []), ...more])]
  const shared = names.map((name) => {
    const [description, schema] = HEADERS[name]
    const required = REQUIRED.has(name) && { required: true }
    return [name, components.share('headers', name, () => ({ description, ...required, schema }))] as const
  })
  return Object.fromEntries(shared)
}

const moreHeaders = ({ answer: { successes }, hasRateHeaders }: NamedOperation): readonly HeaderName[] => [
  ...(successes.notModified || successes.precondition ? VALIDATORS : []),
  ...(hasRateHeaders ? RATE : []),
]

/** All responses of an operation, by status. Operations of one shape share all but the success itself. */
export function responsesOf(operation: NamedOperation, components: Components): JsonText {
  const { id, name, answer } = operation
  const success = JSON.stringify(
    components.shareText(
      'responses',
      `${name}Success`,
      () => successText(operation, components),
      `success ${id}`,
    ),
  )
  const others = components.remember(`responses ${shapeOf(operation, components)}`, () => ({
    ...otherSuccesses(operation, components),
    ...failuresOf(operation, components),
  }))
  const own = answer.successes.other ? `{"200":${success},"2XX":${success}}` : `{"200":${success}}`
  return mergedText(own, others)
}

/** All that `otherSuccesses` and `failuresOf` read. */
function shapeOf(operation: NamedOperation, components: Components): string {
  const { answer, faults, mode, otherRefusals, ownErrors, hasRateHeaders, websocket } = operation
  const { notModified, precondition, ranges, otherUnits } = answer.successes
  const numbers = `${components.numberOf(faults)} ${components.numberOf(answer.types)} ${ownErrors.join()}`
  return `${notModified} ${precondition} ${ranges} ${otherUnits} ${otherRefusals} ${hasRateHeaders} ${websocket} ${mode} ${numbers}`
}

function successText(operation: NamedOperation, components: Components): JsonText {
  const more = moreHeaders(operation)
  const headers = components.remember(`headers ${more.join()}`, () => headersOf('200', more, components))
  return objectText([
    ['description', '"Success"'],
    ['headers', headers],
    ['content', successContent(operation, components)],
  ])
}

function otherSuccesses(operation: NamedOperation, components: Components): Node {
  const { answer, websocket } = operation
  const { notModified, ranges } = answer.successes
  const more = moreHeaders(operation)
  const shared = (status: string, description: string): Reference =>
    components.shareEqual('responses', `Success${status}`, more.join(), () => ({
      description,
      headers: headersOf(status, more, components),
    }))
  return {
    ...(websocket && { '101': shared('101', 'The websocket is open (RFC 6455).') }),
    ...(ranges && { '206': partOf(operation, more, components) }),
    ...(notModified && { '304': shared('304', 'The data has not changed') }),
  }
}

/** The type of an answer that has several parts (RFC 9110 §14.6). */
const SEVERAL_PARTS = 'multipart/byteranges'

/** Operations that answer in the same types share it: it has no schema. */
function partOf(
  { answer: { types, successes }, mode }: NamedOperation,
  more: readonly HeaderName[],
  components: Components,
): Reference {
  const names = [
    ...types.map((each) => (typeof each === 'string' ? each : each.type)),
    ...(successes.otherUnits === true ? [] : [SEVERAL_PARTS]),
    ...Object.keys(unconverted(mode)),
  ]
  return components.shareEqual('responses', 'Success206', `${more.join()} ${names.join()}`, () => ({
    description: 'The part of the data that `Range` asked for',
    headers: headersOf('206', more, components),
    content: Object.fromEntries(names.map((type) => [type, {}])),
  }))
}

/** In a report-only area, a client that asks for a type that there is not gets the data service's own. */
const unconverted = (mode: NamedOperation['mode']): Node => (mode === 'report-only' ? { '*/*': {} } : {})

/** XML with the data service's own elements: no schema of JSON tells them (C7.7). */
export const OWN_XML = { 'x-postern-own-xml': true } as const

/** The content of a success: every type of C7.1, or the operation's own types. */
function successContent(operation: NamedOperation, components: Components): JsonText {
  const { answer, mode } = operation
  const rest = mode === 'report-only' ? [['*/*', '{}'] as const] : []
  if (answer.kind === 'own')
    return objectText(new Map([...answer.types.map((type) => [type, '{}'] as const), ...rest]))
  const schema = successSchema(operation, components)
  const { versions } = operation
  const media = versions.map((version) => {
    const valueOf = ({ version: own, data }: ExampleDescription) =>
      own === version && data !== undefined ? { Errors: [], Data: data } : undefined
    return JSON.stringify({ schema, examples: examplesOf(operation, 'Response', valueOf, components) })
  })
  const types = answer.types.map(({ type, format, version }) => {
    if (format === 'xml' && answer.ownXml) return [type, JSON.stringify(OWN_XML)] as const
    return [type, media[versions.indexOf(version)] ?? '{}'] as const
  })
  return objectText(new Map([...types, ...rest]))
}

/** A component for each example for which `valueOf` gives a value. */
export function examplesOf(
  { name: operation, examples }: NamedOperation,
  of: 'Request' | 'Response',
  valueOf: (example: ExampleDescription) => unknown,
  components: Components,
): Node | undefined {
  const found = examples.filter((each) => valueOf(each) !== undefined)
  if (found.length === 0) return undefined
  return Object.fromEntries(
    found.map((example) => [
      example.name,
      components.share('examples', `${operation}${of}.${example.name}`, () => ({
        ...(example.summary !== undefined && { summary: example.summary }),
        value: valueOf(example),
      })),
    ]),
  )
}

function failuresOf(operation: NamedOperation, components: Components): Node {
  const { otherRefusals, hasRateHeaders, answer } = operation
  const other = (status: string, description: string): Reference =>
    components.shareEqual('responses', `Failure${status}`, String(hasRateHeaders), () => ({
      description,
      headers: headersOf(status, hasRateHeaders ? RATE : [], components),
      content: failureContent(undefined, components),
    }))
  return {
    ...failuresByStatus(operation, components),
    ...(answer.successes.ranges && { '416': other('416', 'The data has no such part') }),
    ...(otherRefusals && { '4XX': other('4XX', 'Another refusal of the data service') }),
  }
}

function failuresByStatus(
  { faults, ownErrors, hasRateHeaders }: NamedOperation,
  components: Components,
): Node {
  const own = new Set(ownErrors)
  const byStatus = Map.groupBy(faults, (code) => FAULTS[code].status)
  const responses = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([number, codes]) => {
      const status = String(number)
      return [status, failure({ status, codes, isOwn: own.has(number), hasRateHeaders }, components)] as const
    })
  return Object.fromEntries(responses)
}

interface Failure {
  readonly status: string
  readonly codes: readonly FaultCode[]
  readonly isOwn: boolean
  readonly hasRateHeaders: boolean
}

function failure({ status, codes, isOwn, hasRateHeaders }: Failure, components: Components): Reference {
  const rows: readonly FaultRow[] = codes.map((code) => FAULTS[code])
  const wires = [...new Set(rows.map(({ wire }) => wire))]
  const key = `${codes.join(' ')} ${isOwn} ${hasRateHeaders}`
  return components.shareEqual('responses', `Failure${status}`, key, () => ({
    description: [...new Set(rows.map(({ text }) => `- ${text}`))].join('\n'),
    headers: headersOf(status, hasRateHeaders ? RATE : [], components),
    content: failureContent(isOwn ? undefined : wires.toSorted(), components),
    'x-postern-codes': wires,
  }))
}

/** The content of a failure: in the plain types, whatever the client asked for (C2.4). */
function failureContent(codes: readonly WireCode[] | undefined, components: Components): Node {
  const schema = failureSchema(codes, components)
  return Object.fromEntries(Object.values(PLAIN_TYPES).map((type) => [type, { schema }]))
}
