/** Addresses of clients. */
import type { RecordProblems } from './read-records.ts'

/** The schema of an address that Postern calls. */
export const HTTPS_ADDRESS = {
  pattern: '^https?://[^\\s/@#?<>"]+(/[^\\s#<>"]*)?$',
  expected: 'an https:// URL without credentials and fragment, or http:// on loopback',
} as const

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])
/** RFC 8252 §7.1: an app's own scheme is a reversed domain name, so it has a dot. */
const OWN_SCHEME = /^[a-z][a-z0-9+-]*\.[a-z0-9.+-]+:$/

export function schemeTrouble(url: URL, isPublic: boolean, what: string): string | undefined {
  if (url.protocol === 'https:') return undefined
  if (url.protocol === 'http:')
    return LOOPBACK.has(url.hostname)
      ? undefined
      : `is http to another machine: ${what} would cross the network unencrypted`
  return isPublic && OWN_SCHEME.test(url.protocol) ? undefined : 'expected https, or http on loopback'
}

/** https, or http on loopback. */
export function checkAddress(
  key: string,
  address: string | undefined,
  what: string,
  problems: RecordProblems,
): void {
  const url = address === undefined ? undefined : URL.parse(address)
  if (url === undefined) return
  const trouble = url === null ? 'expected an https URL' : schemeTrouble(url, false, what)
  if (trouble !== undefined) problems.error([key], trouble)
}
