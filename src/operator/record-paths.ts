/** The paths of the directory's records in the admin API. */
import { type NounName, NOUNS } from '../directory/nouns.ts'
import { meantBy } from './conditions.ts'
import { type AdminRequest, type Members, text } from './operation.ts'
import type { MeantRecord, RecordAt } from './record-changes.ts'

/** `/businesses/:business/funds`, without the last name. */
export function collectionOf(noun: NounName): string {
  const [parent, ...more] = NOUNS[noun].names
  return more.length === 0
    ? `/${NOUNS[noun].plural}`
    : `/${NOUNS['business'].plural}/:${parent ?? ''}/${NOUNS[noun].plural}`
}

export const recordPath = (noun: NounName): string =>
  `${collectionOf(noun)}/:${NOUNS[noun].names.at(-1) ?? ''}`

export const withinOf = (noun: NounName): readonly string[] => NOUNS[noun].names.slice(0, -1)

export const paramsOf = (names: readonly string[]): Members =>
  Object.fromEntries(names.map((name) => [name, text(`The \`${name}\`, percent-encoded.`)]))

export const namesIn = (names: readonly string[], { params }: AdminRequest): readonly string[] =>
  names.map((name) => params[name] ?? '')

export const atOf = (noun: NounName, request: AdminRequest): RecordAt => ({
  noun,
  names: namesIn(NOUNS[noun].names, request),
})

/** The record of a request, and what the request says of its version. */
export const meantOf = (noun: NounName, request: AdminRequest): MeantRecord => ({
  at: atOf(noun, request),
  operator: request.operator,
  isMeant: meantBy(request),
})

/** Where a record is from now on. */
export const locationOf = (noun: NounName, names: readonly string[]): string => {
  const encoded = names.map((name) => encodeURIComponent(name))
  return recordPath(noun).replaceAll(/:\w+/g, () => encoded.shift() ?? '')
}
