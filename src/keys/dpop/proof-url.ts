import { canonicalSegment } from '../../http/request-target.ts'

/** Scheme, authority and path. What follows is no part of an `htu` (RFC 9449 §4.3). */
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

/** One slash at the end plays no part. @throws Fault `bad_target` */
function canonicalPath(path: string): string {
  const sent = path.split('/').slice(1)
  if (sent.at(-1) === '') sent.pop()
  const segments: string[] = []
  for (const segment of sent) {
    if (segment === '..') segments.pop()
    else if (segment !== '.') segments.push(canonicalSegment(segment))
  }
  return `/${segments.join('/')}`
}
