import type { Call } from '../../../../base/contracts/calls/backend.ts'
import type { Template } from '../../../../base/contracts/calls/templates.ts'
import {
  NO_AUTHORITIES,
  decodeSegment,
  parseRequestTarget,
  type RequestTarget,
} from '../../../../base/http/head/request-target.ts'
import { placeholdersIn, solePlaceholder, fixedText } from '../../templates/parse.ts'
import {
  type FixedHeaderWriter,
  type PathTemplate,
  percentEncode,
  type QueryTemplate,
} from '../../templates/places.ts'

export type PublicSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | {
      /** `rest`: of 1 to 32 segments, each of which it takes (C3.3). */
      readonly kind: 'parameter' | 'rest'
      readonly name: string
      readonly takes: (value: string) => boolean
    }

export interface OfferedOperation {
  readonly level: 'business' | 'fund'
  readonly area: string
  /** As configured: `member-detail/{memberId}`. */
  readonly action: string
  readonly pattern: readonly PublicSegment[]
  /** Whether calls of a public path are this action's: one that has a literal in place of its parameter comes first. */
  readonly isAt: (target: RequestTarget) => boolean
  /** Undefined: its upstream path is the public one. */
  readonly path: PathTemplate | undefined
  /** Adds to a query what the calls of the operation have there; undefined: nothing. */
  readonly query: QueryTemplate | undefined
  /** Writes the configured headers of its calls; undefined: none. */
  readonly headers: FixedHeaderWriter | undefined
}

export interface OperationCall {
  readonly operation: OfferedOperation
  readonly call: Call
}

type Values = Map<string, string>

/**
 * The calls that are sent to a path of an upstream, within the business and fund of a call. All have one public path: none,
 * if no operation is sent there, or if it is not clear which one.
 * @param path in canonical form, without the base path of the target
 */
export function callsTo(
  path: string,
  call: Call,
  operations: readonly OfferedOperation[],
): readonly OperationCall[] {
  const asItIs = parsed(path)
  const found = operations.flatMap((operation) => {
    const sent = operation.level === call.action.level ? callTo(path, asItIs, call, operation) : undefined
    return sent === undefined ? [] : [{ operation, call: sent }]
  })
  return new Set(found.map((each) => each.call.target.path)).size === 1 ? found : []
}

/** The public path of an upstream's path, within the business and fund of a call. Undefined as for `callsTo`. */
export const publicPathOf = (
  path: string,
  call: Call,
  operations: readonly OfferedOperation[],
): string | undefined => callsTo(path, call, operations)[0]?.call.target.path

/** @param asItIs the path as a public one; undefined if it is none */
function callTo(
  path: string,
  asItIs: RequestTarget | undefined,
  call: Call,
  operation: OfferedOperation,
): Call | undefined {
  const { path: template } = operation
  // The path does not tell what was in the query or the body of the call.
  if (template?.placeholders.some(({ to }) => to.kind === 'query' || to.kind === 'body')) return undefined
  const target = template === undefined ? asItIs : fromTemplate(path, template, call, operation)
  const params = target && paramsOf(target, call, operation)
  if (params === undefined || target === undefined || !operation.isAt(target)) return undefined
  const { level, area, action } = operation
  const again = { ...call, target, params, action: { ...call.action, level, area, action } }
  // The template must make the same path again from the URL: so no reading of it is a guess.
  return template === undefined || attempt(() => template.render(again)) === path ? again : undefined
}

/** The path parameters of a public path; undefined if it is not of this operation, or of another place than the call's. */
function paramsOf(
  { segments }: RequestTarget,
  { target }: Call,
  { level, area, pattern }: OfferedOperation,
): Readonly<Record<string, string>> | undefined {
  const start = level === 'fund' ? 5 : 4
  const hasRest = pattern.some(({ kind }) => kind === 'rest')
  const more = segments.length - (start + 1 + pattern.length)
  if (more < 0 || (more > 0 && !hasRest) || segments[start] !== area) return undefined
  // Version, level, business and fund as the client wrote them: those were checked.
  for (let at = 0; at < start; at++) if (segments[at] !== target.segments[at]) return undefined
  const params: Record<string, string> = Object.create(null) as Record<string, string>
  let at = start + 1
  for (const expected of pattern) {
    const count = expected.kind === 'rest' ? more + 1 : 1
    const values = segments.slice(at, at + count).map(decodeSegment)
    at += count
    if (expected.kind === 'literal' ? values[0] !== expected.text : !values.every(expected.takes))
      return undefined
    if (expected.kind !== 'literal') params[expected.name] = values.join('/')
  }
  return params
}

function fromTemplate(
  path: string,
  { segments: templates }: PathTemplate,
  call: Call,
  { level, area, pattern }: OfferedOperation,
): RequestTarget | undefined {
  const segments = path.slice(1).split('/')
  const values: Values = new Map()
  const hasRest = pattern.some(({ kind }) => kind === 'rest')
  const parts = templates
    .map((template) => ({ template, sole: solePlaceholder(template) }))
    .filter(({ sole }) => !(sole?.written === 'fund' && level === 'business'))
    .map(({ template, sole }) => {
      const isAction = sole?.written === 'action'
      return {
        template,
        least: isAction ? pattern.length : 1,
        isLong: hasRest && (isAction || sole?.to.kind === 'segments'),
      }
    })
  const long = parts.filter(({ isLong }) => isLong).length
  const spare = segments.length - parts.reduce((sum, { least }) => sum + least, 0)
  // Each of them holds the same rest.
  const more = long === 0 ? 0 : spare / long
  if (!Number.isInteger(more) || more < 0) return undefined
  let at = 0
  for (const { template, least, isLong } of parts) {
    const count = isLong ? least + more : least
    const given = segments.slice(at, at + count)
    at += count
    if (given.length < count || !take(template, given, values)) return undefined
  }
  if (at !== segments.length) return undefined
  const start = call.target.segments.slice(0, level === 'fund' ? 5 : 4)
  const action = values.get('action') ?? actionFrom(pattern, values)
  return action === undefined ? undefined : parsed(`/${[...start, area, action].join('/')}`)
}

/** Reads the values of a template's placeholders from some segments. False if these cannot be of the template. */
function take(template: Template, given: readonly string[], values: Values): boolean {
  const sole = solePlaceholder(template)
  if (sole?.written === 'action' || sole?.to.kind === 'segments')
    return keep(values, sole.written, given.join('/'))
  const segment = given[0] ?? ''
  const placeholders = placeholdersIn(template)
  if (placeholders.length === 0) return segment === fixedText(template)
  // Nobody knows where one ends and the next one begins.
  if (placeholders.length > 1) return false
  const at = template.findIndex((part) => part.kind === 'placeholder')
  const [before, after] = [fixedText(template.slice(0, at)), fixedText(template.slice(at + 1))] as const
  if (
    !segment.startsWith(before) ||
    !segment.endsWith(after) ||
    segment.length <= before.length + after.length
  )
    return false
  const value = segment.slice(before.length, segment.length - after.length)
  return keep(values, placeholders[0]?.written ?? '', value)
}

/** One placeholder stands for one value, wherever it is. */
function keep(values: Values, name: string, value: string): boolean {
  const known = values.get(name)
  values.set(name, value)
  return known === undefined || known === value
}

/** The action's part of the public path; undefined if a parameter of it is unknown. */
function actionFrom(pattern: readonly PublicSegment[], values: Values): string | undefined {
  const segments: string[] = []
  for (const part of pattern) {
    const value =
      part.kind === 'literal' ? part.text : values.get(part.kind === 'rest' ? `${part.name}...` : part.name)
    const texts = part.kind === 'rest' ? value?.split('/') : value === undefined ? undefined : [value]
    const encoded = texts && attempt(() => texts.map((text) => percentEncode(decodeSegment(text))))
    if (encoded === undefined) return undefined
    segments.push(...encoded)
  }
  return segments.join('/')
}

const parsed = (path: string): RequestTarget | undefined =>
  attempt(() => parseRequestTarget(path, NO_AUTHORITIES))

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}
