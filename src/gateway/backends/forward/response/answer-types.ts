import type { Payload } from '../../../../base/contracts/calls/backend.ts'
import { parseContentType } from '../../../../base/http/head/media-type.ts'
import { isOfFormat } from './response.ts'

/** How answers of other media types, in lower case, are read (C8.8). */
export type AnswerTypes = ReadonlyMap<string, 'json' | 'xml' | 'text'>

interface TypeRules {
  readonly format: 'json' | 'xml'
  readonly types: AnswerTypes | undefined
}

const listed = (contentType: string, { types }: TypeRules): 'json' | 'xml' | 'text' | undefined =>
  types?.get(parseContentType(contentType)?.type ?? '')

/** How an answer is read; undefined for an unexpected type. An answer that declares none may be what is expected. */
export function kindOf(
  contentType: string | undefined,
  rules: TypeRules & { readonly payload: Payload },
): 'json' | 'xml' | 'text' | undefined {
  const isText = rules.payload === 'text'
  if (contentType === undefined) return isText ? 'text' : rules.format
  const known = listed(contentType, rules)
  if (known !== undefined) return known
  if (isText) return isPlainText(contentType) ? 'text' : undefined
  return isOfFormat(contentType, rules.format) ? rules.format : undefined
}

/** The format in which an answer may tell of errors; undefined if it has no such format. */
export function formatOf(contentType: string | undefined, rules: TypeRules): 'json' | 'xml' | undefined {
  const known = contentType === undefined ? undefined : listed(contentType, rules)
  if (known === 'text') return undefined
  return known ?? (isOfFormat(contentType, rules.format) ? rules.format : undefined)
}

/** A page is text too, but nobody's data: services answer one where somebody has to sign in. */
const isPlainText = (contentType: string): boolean => {
  const { type = '' } = parseContentType(contentType) ?? {}
  return type.startsWith('text/') && type !== 'text/html'
}
