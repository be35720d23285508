import { PROOF_HEADER, PROOF_NONCE_HEADER } from './end-to-end-headers.ts'
import type { Head } from './head.ts'

/** The cross-origin calls that a deployment allows. Names of methods and headers as they shall be sent. */
interface CorsRules {
  /** As browsers write them: scheme, host, and the port where it isn't the scheme's own. */
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposeHeaders: readonly string[]
  /** How long a browser may keep the answer to a preflight, in milliseconds. */
  readonly maxAge: number
}

type Headers = Readonly<Record<string, string | readonly string[]>>

/** Headers of Postern's own answers that scripts may read, besides the few that they may always read. */
const EXPOSED = [
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'WWW-Authenticate',
  'Allow',
  'ETag',
  PROOF_NONCE_HEADER,
]

/** A page that has a bound token can call with it wherever it can call at all. */
const isProof = (name: string): boolean => name.toLowerCase() === PROOF_HEADER.toLowerCase()

/** Whether this is how a browser writes an origin: so that a value that could never match isn't taken for one. */
export const isOrigin = (text: string): boolean =>
  /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text

/**
 * Cross-origin calls from browsers (Fetch Standard, "CORS protocol"; C4.18). An origin that is not on the list gets an
 * answer without these headers, so that its browser keeps the answer from it. Credentials are never allowed: calls bear
 * a token in a header, and Postern's cookies are for its own pages.
 */
export class Cors {
  readonly #origins: ReadonlySet<string>
  readonly #preflight: Headers
  readonly #exposed: string

  constructor({ origins, methods, headers, exposeHeaders, maxAge }: CorsRules) {
    this.#origins = new Set(origins)
    this.#exposed = [...EXPOSED, ...exposeHeaders].join(', ')
    this.#preflight = {
      'Access-Control-Allow-Methods': methods.join(', '),
      'Access-Control-Allow-Headers': [...headers.filter((name) => !isProof(name)), PROOF_HEADER].join(', '),
      'Access-Control-Max-Age': String(Math.floor(maxAge / 1000)),
    }
  }

  /** An OPTIONS that a browser sends before the call itself. Any other is a method like all. */
  isPreflight({ method, headers }: Head): boolean {
    return (
      method === 'OPTIONS' &&
      headers.origin !== undefined &&
      headers['access-control-request-method'] !== undefined
    )
  }

  /** The answer to a preflight. The same for every path: which actions there are is for tokens to find out. */
  preflight({ headers }: Head): Headers {
    return { 'Cache-Control': 'no-store', ...(this.#allows(headers.origin) && this.#preflight) }
  }

  /** An answer's headers with what lets the script read it. `Vary` always: caches serve everyone. */
  onAnswer({ headers: { origin } }: Head, headers: Headers): Headers {
    const result: Record<string, string | readonly string[]> = {}
    const varying: string[] = []
    for (const name in headers) {
      const value = headers[name] ?? ''
      const lower = name.toLowerCase()
      if (lower === 'vary') varying.push(...[value].flat())
      else if (!lower.startsWith('access-control-') || name in this.#preflight) result[name] = value
    }
    result.Vary = [...varying, 'Origin'].join(', ')
    if (!this.#allows(origin)) return result
    result['Access-Control-Allow-Origin'] = origin
    result['Access-Control-Expose-Headers'] = this.#exposed
    return result
  }

  #allows(origin: string | undefined): origin is string {
    return origin !== undefined && this.#origins.has(origin)
  }
}
