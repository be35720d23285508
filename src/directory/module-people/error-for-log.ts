/** What a log may tell of an error that the operator's code threw while it held passwords and hashes. */

const REDACTED = '[redacted]'
/** Characters of a message that are told. */
const MOST_TEXT = 2000
/** Errors that cause one another. */
const MOST_CAUSES = 3

/** Characters of a text that are searched. A longer one is not told at all. */
const MOST_SEARCHED = 100_000

/** Hashes of passwords: crypt and PHC strings (`$2b$…`, `$argon2id$…`), LDAP's (`{SSHA}…`). */
const MARKED = /\$[\w-]{1,20}\$[\w./+=,$-]+|\{[A-Z][A-Z0-9-]{1,20}\}[\w+/=.$]+/g
/** Words in which one may stand without a mark. */
const WORDS = /[\w+/=-]{20,}/g
const HEX = /^[0-9A-Fa-f]{32,}$/
/** Characters. Without a slash: file names shall be told. */
const LONG_WORD = 40

const isHash = (word: string): boolean =>
  word.endsWith('=') || HEX.test(word) || (word.length >= LONG_WORD && !word.includes('/'))

/** A copy of a text without these secrets, and without what looks like a hash. */
export function withoutHashes(text: string, secrets: readonly string[] = []): string {
  if (text.length > MOST_SEARCHED) return '[too long]'
  let rest = text
  for (const secret of secrets) for (const form of formsOf(secret)) rest = rest.replaceAll(form, REDACTED)
  return rest
    .slice(0, MOST_TEXT)
    .replace(MARKED, REDACTED)
    .replace(WORDS, (word) => (isHash(word) ? REDACTED : word))
}

/** A text as it is, and as messages quote it: in JSON, in a URL, in base64. */
function formsOf(secret: string): string[] {
  if (secret === '') return []
  const forms = [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret.toWellFormed()),
    Buffer.from(secret)
      .toString('base64')
      .replace(/={1,2}$/, ''),
  ]
  return [...new Set(forms)].sort((a, b) => b.length - a.length)
}

/** An error for the log: what was thrown, without secrets and hashes and without any members but message and code. */
export function errorForLog(thrown: unknown, secrets: readonly string[] = [], depth = 0): Error {
  try {
    return copyOf(thrown, secrets, depth)
  } catch {
    return new Error('what was thrown cannot be read')
  }
}

function copyOf(thrown: unknown, secrets: readonly string[], depth: number): Error {
  if (!(thrown instanceof Error))
    return new Error(typeof thrown === 'string' ? withoutHashes(thrown, secrets) : `threw ${nameOf(thrown)}`)
  const { name, message, stack, code, cause } = thrown as unknown as Readonly<Record<string, unknown>>
  const more = cause !== undefined && depth < MOST_CAUSES
  const copy = new Error(withoutHashes(String(message), secrets), {
    ...(more && { cause: errorForLog(cause, secrets, depth + 1) }),
  })
  copy.name = withoutHashes(String(name), secrets)
  copy.stack = [`${copy.name}: ${copy.message}`, ...framesOf(stack)].join('\n')
  if (typeof code === 'string') Object.assign(copy, { code: withoutHashes(code, secrets) })
  return copy
}

const nameOf = (thrown: unknown): string => (thrown === null ? 'null' : `a value of type ${typeof thrown}`)

/** Places in the code, which hold no values; the message before them may hold several lines. */
const framesOf = (stack: unknown): string[] =>
  typeof stack === 'string' ? stack.split('\n').filter((line) => /^ {4}at .{0,500}$/.test(line)) : []
