import { type JsonValue, parseJson } from '../../../http/json.ts'

/** A token, as its endpoint gives it. */
export interface GrantedToken {
  readonly accessToken: string
  /** Milliseconds from the request on; undefined where the answer does not tell. */
  readonly life: number | undefined
}

/** Why there is no token, in words for the log: nothing of the answer is repeated. */
export class NoToken extends Error {
  override readonly name = 'NoToken'
}

/** The answer of a token endpoint, read whole. */
export interface TokenAnswer {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer
}

/** RFC 7235 §2.1. The same is the syntax of bearer tokens (RFC 6750 §2.1). */
const TOKEN68 = /^[A-Za-z0-9\-._~+/]+=*$/
/** Characters. A longer one fits into no upstream's limit of header size. */
const LONGEST_TOKEN = 16 * 1024

export const isToken68 = (text: string): boolean => text.length <= LONGEST_TOKEN && TOKEN68.test(text)

const JSON_TYPE = /^application\/json\s*(?:;|$)/i
/** A token's answer holds a few values. */
const LIMITS = { depth: 20, nodes: 2000 }

/** What is told of a refusal (RFC 6749 §5.2, RFC 8707 §2): a word of this list, never one of the answer's own. */
const ERRORS: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
])

/** RFC 6749 §5.1. Throws NoToken. */
export function readTokenAnswer(answer: TokenAnswer): GrantedToken {
  const { status } = answer
  if (status >= 300 && status < 400)
    throw new NoToken(`it answered ${status}, and redirects are not followed`)
  const members = membersOf(answer)
  if (status !== 200) throw new NoToken(`it answered ${status}${errorOf(members)}`)
  if (members === undefined) throw new NoToken('its answer is no JSON object')
  const { access_token: accessToken, token_type: type, expires_in: life } = members
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw new NoToken('its token_type is not bearer')
  if (typeof accessToken !== 'string' || !isToken68(accessToken))
    throw new NoToken('its access_token is missing, or cannot be sent')
  return { accessToken, life: lifeOf(life) }
}

function errorOf(members: Members | undefined): string {
  const error = members?.['error']
  return typeof error === 'string' && ERRORS.has(error) ? ` (${error})` : ''
}

type Members = Readonly<Record<string, JsonValue>>

function membersOf({ contentType = '', body }: TokenAnswer): Members | undefined {
  if (!JSON_TYPE.test(contentType.trim())) return undefined
  try {
    const value = parseJson(body, LIMITS)
    return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
      ? value
      : undefined
  } catch {
    return undefined
  }
}

/** Seconds as a number; some issuers write it as text. */
const SECONDS = /^-?\d+(?:\.\d+)?(?:[eE]\+?\d+)?$/

function lifeOf(told: JsonValue | undefined): number | undefined {
  if (told === undefined || told === null) return undefined
  const text = typeof told === 'string' ? told : JSON.stringify(told)
  if (!SECONDS.test(text)) throw new NoToken('its expires_in is no number')
  return Number(text) * 1000
}
