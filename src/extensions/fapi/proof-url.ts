import { canonicalSegment } from '../../base/http/head/request-target.ts'

/** Scheme, authority and path. The rest of a URL is no part of an `htu` (RFC 9449 §4.3). */
const PARTS = /^(https?):\/\/([^/?#\\@\s]+)(\/[^?#]*)?/i

/**
 * An address as RFC 3986 §6.2.2 and §6.2.3 normalise it, without query and fragment: its path as the canonical one of a
 * request target (C3.4). Undefined for what is no such address, or could be no target.
 */
export function canonicalUrl(text: string): string | undefined {
  const [, scheme = '', authority = '', path = '/'] = PARTS.exec(text) ?? []
  try {
    return new URL(`${scheme}://${authority}`).origin + canonicalPath(path)
  } catch {
    return undefined
  }
}

/** RFC 3986 §5.2.4: a slash at the end counts, and stays behind dots too. @throws Fault `bad_target` */
function canonicalPath(path: string): string {
  const sent = path.split('/').slice(1)
  const last = sent.at(-1) ?? ''
  const isSlashed = last === '' || last === '.' || last === '..'
  if (last === '') sent.pop()
  const segments: string[] = []
  for (const segment of sent) {
    if (segment === '..') segments.pop()
    else if (segment !== '.') segments.push(canonicalSegment(segment))
  }
  const joined = segments.map((segment) => `/${segment}`).join('')
  return isSlashed ? `${joined}/` : joined
}
