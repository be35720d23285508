import type { RequestTarget } from '../../http/request-target.ts'
import { decodeSegment } from '../../http/request-target.ts'
import { Fault } from '../../kernel/faults.ts'
import type { Operation, Route } from '../action.ts'
import type { ActionTable } from '../action-table.ts'

/** What the URL names (C3.2), before it is known whether any of it exists. */
export interface Asked {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
  readonly business: string
  readonly fund: string | undefined
}

/** Index of the area's segment in `/api/{version}/b/{business}/{area}` and `/api/{version}/f/{business}/{fund}/{area}`. */
export const AREA_AT: Readonly<Record<string, number>> = { b: 4, f: 5 }

/** C4.6: the area and action exist, and offer this method (HEAD wherever GET is). */
export function matchAction(table: ActionTable<Route>, { segments }: RequestTarget, method: string): Asked {
  const level = segments[2] ?? ''
  const areaAt = AREA_AT[level]
  const area = areaAt === undefined ? undefined : segments[areaAt]
  const match =
    areaAt === undefined || area === undefined ? undefined : table.find(level, area, segments, areaAt + 1)
  if (match === undefined) throw new Fault('unknown_action')
  const operation = match.value.methods.get(method)
  if (operation === undefined) throw new Fault('method_not_allowed', { allow: match.value.allow })
  return {
    operation,
    params: paramsOf(operation.action.parameters, match.values),
    business: decodeSegment(segments[3] ?? ''),
    fund: level === 'f' ? decodeSegment(segments[4] ?? '') : undefined,
  }
}

const NO_PARAMS: Asked['params'] = Object.freeze({})

/** The values under the names that the action has for them. */
function paramsOf(names: readonly string[], values: readonly string[]): Asked['params'] {
  if (names.length === 0) return NO_PARAMS
  const params = Object.create(null) as Record<string, string>
  for (let at = 0; at < names.length; at++) params[names[at] ?? ''] = values[at] ?? ''
  return params
}
