/** Makes of a path of a service the path of an action, and what the service is asked for. */
import { parsePathPattern } from '../../../gateway/path-pattern.ts'
import type { JsonObject } from '../../../http/json-value.ts'
import type { Level } from '../service.ts'
import { listOf, nameOf, objectOf, slugOf, textOf } from './parts.ts'
import { targetOf, type TargetParameters } from './targets.ts'

export interface MappedPath {
  /** Which codes its segments are. */
  readonly targets: ReadonlySet<Level>
  /** A word of the path that names what it is about, for an operation without a tag. */
  readonly word: string
  /** `pets/{petId}`: parameters without their types. */
  readonly action: string
  /** The types of its parameters, by their names in `action`: `uuid`, `integer`, `/a|b/`. */
  readonly types: ReadonlyMap<string, string>
  /** What the service is asked for, if it is not the action alone. */
  readonly path: string | undefined
  /** Parameters whose type cannot be said. */
  readonly untyped: readonly string[]
}

const LITERAL = /^[A-Za-z0-9._~-]+$/
/** What may stand in a path to a service as it is. */
const SENDABLE = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/
const PARAMETER = /\{([^{}]+)\}/g
/** Names that mean something else in the path that a service is asked for. */
const RESERVED: ReadonlySet<string> = new Set(['version', 'business', 'fund', 'area', 'action'])

function parameterName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9]+/g, '_')
  const begun = /^[A-Za-z]/.test(plain) ? plain : `p${plain}`
  return RESERVED.has(begun) ? `${begun}_` : begun
}

interface Segment {
  /** As the service has it. */
  readonly sent: string
  /** As the action has it; undefined: it is not a part of the action. */
  readonly own: string | undefined
  readonly target: Level | undefined
}

type Placeholder = { readonly text: string; readonly target: Level | undefined }

function placeholderOf(name: string, targets: TargetParameters): Placeholder {
  const target = targetOf(name, targets)
  return { text: `{${target ?? parameterName(name)}}`, target }
}

/** A text instead of a segment says why there is none. */
function segmentOf(text: string, targets: TargetParameters): Segment | string {
  const names = [...text.matchAll(PARAMETER)].map(([, name = '']) => name)
  const [name, ...others] = names
  if (others.length > 0) return `the segment "${text}" has several parameters`
  if (!SENDABLE.test(text.replaceAll(PARAMETER, '')))
    return `the segment "${text}" has other characters than a path may`
  if (name === undefined) {
    const own = LITERAL.test(text) ? text : slugOf(text)
    return own === undefined
      ? `the segment "${text}" has no letter and no digit`
      : { sent: text, own, target: undefined }
  }
  const { text: placeholder, target } = placeholderOf(name, targets)
  const before = slugOf(text.slice(0, text.indexOf('{')))
  return {
    sent: text.replace(PARAMETER, () => placeholder),
    // `orders({id})` is `orders/{id}`: without the word, it would take the place of every other action.
    own:
      target === undefined ? [before, placeholder].filter((part) => part !== undefined).join('/') : undefined,
    target,
  }
}

/** The word before the code of a business or fund names what the code is of: `/funds/{fund}/members` is `members`. */
function actionOf(segments: readonly Segment[]): readonly string[] {
  const own = segments.flatMap(({ own: text }, at) =>
    text === undefined || segments[at + 1]?.target !== undefined ? [] : [text],
  )
  if (own.length > 0) return own
  return [segments.findLast(({ own: text }) => text !== undefined)?.own ?? 'root']
}

/** Parts at the beginning of a path that tell nothing of what it is about. */
const GENERAL = /^(?:api|rest|v\d+(?:\.\d+)*)$/i

function wordOf(action: string): string {
  const words = action.split('/').filter((segment) => !segment.includes('{'))
  return words.find((word) => !GENERAL.test(word)) ?? words[0] ?? 'api'
}

const isType = (type: string): boolean => {
  try {
    return parsePathPattern(`{x:${type}}`).length === 1
  } catch {
    return false
  }
}

/** Undefined: any segment. Null: what is demanded cannot be said. */
function typeOf(schema: JsonObject): string | null | undefined {
  const values = listOf(schema['enum']).map(nameOf)
  const pattern = textOf(schema['pattern'])
  if (values.length > 0) {
    const type = `/${values.join('|')}/`
    return values.every((value) => /^\w+$/.test(value)) && isType(type) ? type : null
  }
  if (pattern !== undefined) {
    // The type is matched against the whole segment.
    const [, whole] = /^\^([^|]+)\$$/.exec(pattern) ?? []
    return whole !== undefined && isType(`/${whole}/`) ? `/${whole}/` : null
  }
  if (schema['type'] === 'integer') return 'integer'
  return schema['format'] === 'uuid' ? 'uuid' : undefined
}

/** The path of an action with the types of its parameters. */
export const typedAction = (action: string, types: ReadonlyMap<string, string>): string =>
  action.replaceAll(PARAMETER, (_all, name: string) => {
    const type = types.get(name)
    return type === undefined ? `{${name}}` : `{${name}:${type}}`
  })

/**
 * @param parameters the path parameters, with `name` and `schema`
 * @returns why the path cannot be an action's, if it cannot
 */
export function mapPath(
  path: string,
  parameters: readonly JsonObject[],
  targets: TargetParameters,
): MappedPath | string {
  const texts = path.replace(/^\//, '').replace(/\/$/, '').split('/')
  const mapped = texts[0] === '' && texts.length === 1 ? [] : texts.map((text) => segmentOf(text, targets))
  const refused = mapped.find((each) => typeof each === 'string')
  if (refused !== undefined) return refused
  const segments = mapped.filter((each) => typeof each !== 'string')
  const action = actionOf(segments).join('/')
  const sent = `/${segments.map((each) => each.sent).join('/')}${path.length > 1 && path.endsWith('/') ? '/' : ''}`
  const types = new Map<string, string>()
  const untyped: string[] = []
  for (const { name, schema } of parameters) {
    const type = typeOf(objectOf(schema))
    if (type === null) untyped.push(nameOf(name))
    else if (type !== undefined) types.set(parameterName(nameOf(name)), type)
  }
  try {
    parsePathPattern(typedAction(action, types))
  } catch (thrown) {
    return (thrown as Error).message
  }
  return {
    targets: new Set(segments.flatMap(({ target }) => target ?? [])),
    word: wordOf(action),
    action,
    types,
    untyped,
    path: sent === `/${action}` ? undefined : sent,
  }
}
