/** Only characters of base64url; a part may be empty, such as the signature of an unsecured token. */
const PART = /^[A-Za-z0-9_-]*$/

/** The number of parts of a compact JWS (RFC 7515 §7.1) and of a compact JWE (RFC 7516 §7.1). */
const JOSE_PARTS: ReadonlySet<number> = new Set([3, 5])

/**
 * Whether an access token is opaque: only its issuer can tell what it stands for. All others are judged here by their
 * signature, and are never sent to an introspection endpoint: an endpoint might accept what the rules here refuse, or
 * would learn a token of another issuer (C11.2).
 *
 * A token is not opaque if it has three or five parts of base64url, whatever is in them, or if its first part can be
 * read as the beginning of a JSON object, however it is spelled and however many parts follow.
 */
export function isOpaque(token: string): boolean {
  // More than five dots are no form of JOSE; what follows them need not be split.
  const parts = token.split('.', 7)
  if (JOSE_PARTS.has(parts.length) && parts.every((part) => PART.test(part))) return false
  // Node's decoder skips characters that are no base64, as lenient parsers do.
  const first = Buffer.from(parts[0] ?? '', 'base64url').toString('latin1')
  return !first.trimStart().startsWith('{')
}
