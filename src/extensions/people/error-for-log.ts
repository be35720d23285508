import { Buffer } from 'node:buffer'

/** The facts that a log may have about an error that the operator's code threw while it held passwords and hashes. */

const REDACTED = '[redacted]'
/** The longest message, in characters. */
const MOST_TEXT = 2000
/** How many errors that cause one another are logged. */
const MOST_CAUSES = 3

/** The longest text that is searched, in characters. A longer one is left out. */
const MOST_SEARCHED = 100_000

/** Hashes of passwords: crypt and PHC strings (`$2b$…`, `$argon2id$…`), LDAP's (`{SSHA}…`). */
const MARKED = /\$[\w-]{1,20}\$[\w./+=,$-]+|\{[A-Z][A-Z0-9-]{1,20}\}[\w+/=.$]+/g
/** Words that may be a hash without a mark. */
const WORDS = /[\w+/=-]{20,}/g
const HEX = /^[0-9A-Fa-f]{32,}$/
/** From which length on a word without a slash counts as a hash, in characters. File names have slashes, so they stay. */
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

/** An error as plain data, which goes from thread to thread as it is. */
export interface ErrorFacts {
  readonly name: string
  readonly message: string
  readonly stack: string
  readonly code?: string
  readonly cause?: ErrorFacts
}

/** An error for the log: what was thrown, without secrets and hashes and without any members but message and code. */
export const errorForLog = (thrown: unknown, secrets: readonly string[] = []): Error =>
  errorFromFacts(errorFacts(thrown, secrets))

export function errorFacts(thrown: unknown, secrets: readonly string[] = [], depth = 0): ErrorFacts {
  try {
    return factsOf(thrown, secrets, depth)
  } catch {
    return plainFacts('what was thrown cannot be read')
  }
}

export function errorFromFacts({ name, message, stack, code, cause }: ErrorFacts): Error {
  const error = new Error(message, { ...(cause !== undefined && { cause: errorFromFacts(cause) }) })
  Object.assign(error, { name, stack }, code !== undefined && { code })
  return error
}

const plainFacts = (message: string): ErrorFacts => ({
  name: 'Error',
  message,
  stack: `Error: ${message}`,
})

function factsOf(thrown: unknown, secrets: readonly string[], depth: number): ErrorFacts {
  if (!(thrown instanceof Error))
    return plainFacts(typeof thrown === 'string' ? withoutHashes(thrown, secrets) : `threw ${nameOf(thrown)}`)
  const { name, message, stack, code, cause } = thrown as unknown as Readonly<Record<string, unknown>>
  const more = cause !== undefined && depth < MOST_CAUSES
  const head = {
    name: withoutHashes(String(name), secrets),
    message: withoutHashes(String(message), secrets),
  }
  return {
    ...head,
    stack: [`${head.name}: ${head.message}`, ...framesOf(stack)].join('\n'),
    ...(typeof code === 'string' && { code: withoutHashes(code, secrets) }),
    ...(more && { cause: errorFacts(cause, secrets, depth + 1) }),
  }
}

const nameOf = (thrown: unknown): string => (thrown === null ? 'null' : `a value of type ${typeof thrown}`)

/** Places in the code, which hold no values; the message before them may hold several lines. */
const framesOf = (stack: unknown): string[] =>
  typeof stack === 'string' ? stack.split('\n').filter((line) => /^ {4}at .{0,500}$/.test(line)) : []
