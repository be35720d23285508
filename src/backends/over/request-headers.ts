import { foldName, HOP_BY_HOP } from '../../http/end-to-end-headers.ts'
import { isHeaderValue, isToken } from '../../http/header-text.ts'
import { MOST_HEAD, MOST_LINES } from '../module/answer.ts'
import { broken } from '../module/stream.ts'

/** Folded. What frames a message is made of what is sent; the others are Postern's word, which upstreams believe (C8.2). */
const NOT_A_MODULES: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'content-length',
  'content-type',
  'expect',
  // what is not decoded cannot be read
  'accept-encoding',
  'x-request-id',
  'traceparent',
  'forwarded',
])
const NOT_A_MODULES_FAMILIES = /^(?:x-postern-|x-forwarded-)/

/**
 * Headers that a module sets (undefined: takes out) for an upstream, by lower-case name.
 * @throws Fault upstream_broken, naming the header
 */
export function checkRequestHeaders(
  given: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, string | undefined> {
  const checked = new Map<string, string | undefined>()
  let size = 0
  for (const [name, value] of Object.entries(given)) {
    const shown = JSON.stringify(name.slice(0, 100))
    if (!isToken(name)) throw broken(`gave a header whose name HTTP cannot say: ${shown}`)
    if (isNotAModules(foldName(name))) throw broken(`gave the header ${shown}, which it may not change`)
    if (value !== undefined && (typeof value !== 'string' || !isHeaderValue(value)))
      throw broken(`gave the header ${shown} a value that HTTP cannot say`)
    size += name.length + (value?.length ?? 0) + 4
    if (size > MOST_HEAD || checked.size >= MOST_LINES)
      throw broken(`gave headers of more than ${MOST_HEAD} characters or ${MOST_LINES} lines`)
    checked.set(name.toLowerCase(), value)
  }
  return checked
}

const isNotAModules = (folded: string): boolean =>
  NOT_A_MODULES.has(folded) || NOT_A_MODULES_FAMILIES.test(folded)
