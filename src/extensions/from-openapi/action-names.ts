/** Which action each operation becomes. No operation hides another one: names that collide keep more words of the path. */
import { areDisjoint, parsePathPattern } from '../../gateway/actions/path-pattern.ts'
import type { DescribedOperation } from './operations.ts'
import { type BoundParameters, type MappedPath, typedAction } from './targets.ts'
import type { Level } from '../../operate/hooks/first-configuration.ts'

/** An operation with its place in the configuration. */
export interface Placed {
  readonly operation: DescribedOperation
  readonly level: Level
  readonly area: string
  readonly mapped: MappedPath
  readonly bound: BoundParameters
  /** Where the service finds the business: `path:AccountId`. Empty: nowhere. */
  readonly business: readonly string[]
}

/** An operation whose action is known. */
export interface Named extends Placed {
  /** With the types of its parameters. */
  readonly action: string
  /** The path that the service is asked for, if it is not the action alone. */
  readonly path: string | undefined
}

export interface Naming {
  readonly named: readonly Named[]
  /** Operations without a place: another one has their action and their method. */
  readonly displaced: readonly { readonly placed: Placed; readonly action: string; readonly by: Placed }[]
}

/** `{}` in place of each parameter. */
const shapeOf = (path: string): string => path.replaceAll(/\{[^{}]*\}/g, '{}')

const parametersIn = (action: string): readonly string[] =>
  [...action.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name)

/** One path of the service, with all its methods. */
interface PathDraft {
  readonly operations: Placed[]
  /** Which of its possible actions it has. */
  at: number
}

const actionAt = ({ operations: [first], at }: PathDraft): string => first?.mapped.actions[at] ?? ''

const placeOf = ({ level, area }: Placed, action: string): string => `${level} ${area} ${shapeOf(action)}`

/** Paths whose actions would be the same keep more words, all of them, until none can. */
function untie(drafts: readonly PathDraft[]): void {
  for (;;) {
    const rivals = Map.groupBy(drafts, (draft) => {
      const [first] = draft.operations
      return first === undefined ? '' : placeOf(first, actionAt(draft))
    })
    const tied = [...rivals.values()].filter(({ length }) => length > 1).flat()
    const longer = tied.filter((draft) => (draft.operations[0]?.mapped.actions.length ?? 0) > draft.at + 1)
    if (longer.length === 0) return
    for (const draft of longer) draft.at += 1
  }
}

/** The path with names of parameters that another operation of the action has. */
const renamed = (path: string, from: readonly string[], to: readonly string[]): string =>
  path.replaceAll(/\{([^{}]+)\}/g, (all, name: string) => {
    const at = from.indexOf(name)
    return at < 0 ? all : `{${to[at] ?? name}}`
  })

/** One with a business comes before one without. */
const isBefore = (one: Placed, other: Placed): boolean =>
  one.business.length > 0 && other.business.length === 0

/** @param tell is given a parameter that loses its type */
export function nameActions(
  all: readonly Placed[],
  tell: (placed: Placed, parameter: string) => void,
): Naming {
  const drafts = new Map<string, PathDraft>()
  for (const placed of all) {
    const { sent, actions: possible } = placed.mapped
    const key = [placed.level, placed.area, ...[sent, ...possible].map(shapeOf)].join(' ')
    const draft = drafts.get(key) ?? { operations: [], at: 0 }
    drafts.set(key, draft)
    draft.operations.push(placed)
  }
  untie([...drafts.values()])
  const actions = new Map<Placed, string>()
  for (const { operations, at } of drafts.values())
    for (const placed of operations) actions.set(placed, placed.mapped.actions[at] ?? '')
  const types = keptTypes(actions, tell)
  const taken = new Map<string, Placed>()
  const names = new Map<string, readonly string[]>()
  const keyOf = (placed: Placed): string => {
    const own = parametersIn(actions.get(placed) ?? '')
    const typesOfAll = own.map((name) => types.get(placed)?.get(name) ?? '')
    return JSON.stringify([placeOf(placed, actions.get(placed) ?? ''), ...typesOfAll])
  }
  for (const placed of all) {
    const key = `${placed.operation.method} ${keyOf(placed)}`
    const other = taken.get(key)
    if (other === undefined || isBefore(placed, other)) taken.set(key, placed)
  }
  const named: Named[] = []
  const displaced: Naming['displaced'][number][] = []
  for (const placed of all) {
    const own = actions.get(placed) ?? ''
    const key = keyOf(placed)
    const by = taken.get(`${placed.operation.method} ${key}`)
    if (by !== undefined && by !== placed) {
      displaced.push({ placed, action: own, by })
      continue
    }
    // Parameters of one type at one place are one, even with different names.
    const parameters = parametersIn(own)
    const canonical = names.get(key) ?? parameters
    names.set(key, canonical)
    const action = renamed(own, parameters, canonical)
    const sent = renamed(placed.mapped.sent, parameters, canonical)
    const typed = new Map(
      parameters.flatMap((name, at) => {
        const type = types.get(placed)?.get(name)
        return type === undefined ? [] : [[canonical[at] ?? name, type] as const]
      }),
    )
    const path = sent === `/${action}` ? undefined : sent
    named.push({ ...placed, action: typedAction(action, typed), path })
  }
  return { named, displaced }
}

/** The parameters and words at one place in the paths of actions. */
interface Spot {
  readonly parameters: { readonly placed: Placed; readonly name: string }[]
  readonly literals: Set<string>
}

/**
 * Types of parameters by operation. Parameters of different types at one place must never fit the same segment, and one must
 * fit more than the words at the same place. Those that may lose their types.
 */
function keptTypes(
  actions: ReadonlyMap<Placed, string>,
  tell: (placed: Placed, parameter: string) => void,
): ReadonlyMap<Placed, Map<string, string>> {
  const types = new Map([...actions.keys()].map((placed) => [placed, new Map(placed.mapped.types)]))
  const spots = new Map<string, Spot>()
  for (const [placed, action] of actions) {
    const segments = action.split('/')
    for (const [at, segment] of segments.entries()) {
      const place = placeOf(placed, segments.slice(0, at).join('/'))
      const spot = spots.get(place) ?? { parameters: [], literals: new Set() }
      spots.set(place, spot)
      const [name] = parametersIn(segment)
      if (name === undefined) spot.literals.add(segment)
      else spot.parameters.push({ placed, name })
    }
  }
  for (const { parameters, literals } of spots.values()) {
    const texts = new Set(parameters.map(({ placed, name }) => types.get(placed)?.get(name) ?? ''))
    if (texts.size === 2 && texts.has('integer') && texts.has('signed')) {
      for (const { placed, name } of parameters) types.get(placed)?.set(name, 'signed')
      continue
    }
    if (!areTied([...texts], literals)) continue
    for (const { placed, name } of parameters) if (types.get(placed)?.delete(name)) tell(placed, name)
  }
  return types
}

function areTied(types: readonly string[], literals: ReadonlySet<string>): boolean {
  const compiled = types.flatMap((type) => {
    const [segment] = parsePathPattern(type === '' ? '{x}' : `{x:${type}}`)
    return segment?.kind === 'parameter' ? [segment.type] : []
  })
  return (
    compiled.some(({ values }) => values?.every((value) => literals.has(value))) ||
    compiled.some((one, at) => compiled.slice(at + 1).some((other) => !areDisjoint(one, other)))
  )
}
