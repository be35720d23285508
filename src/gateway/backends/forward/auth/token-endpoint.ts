import { Buffer } from 'node:buffer'
import {
  followedBy,
  headerLine,
  type HeaderText,
  NO_HEADERS,
} from '../../../../base/http/head/header-text.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '../../../../base/http/body/json.ts'
import { readableOf } from '../../../../base/http/body/pieces.ts'
import { readBody } from '../../../../base/http/body/read-body.ts'
import { type After, after as systemAfter } from '../../../../base/kernel/clock.ts'
import { Fault } from '../../../../base/kernel/faults.ts'
import { UpstreamPool } from '../../../upstream/pool.ts'
import type { UpstreamRequest } from '../../../upstream/request.ts'
import type { OAuth2Config } from '../schema/schema.ts'
import type { UpstreamResponse } from '../../../../base/contracts/calls/backend.ts'

export interface GrantedToken {
  readonly accessToken: string
  /** How long the token lives from the request on, in milliseconds; undefined where the answer does not say. */
  readonly life: number | undefined
}

/** Why there is no token, in words for the log: nothing of the answer is repeated. */
export class NoToken extends Error {
  override readonly name = 'NoToken'
}

interface TokenAnswer extends UpstreamResponse {
  readonly body: Buffer
}

/** The longest time from the request to the last byte of the answer, in milliseconds. */
const DEADLINE = 5000
/** The largest answer, in bytes. */
const LARGEST = 64 * 1024

/** Client credentials grant (RFC 6749 §4.4). The certificate of an endpoint is always verified. */
export class TokenEndpoint {
  readonly #request: UpstreamRequest
  readonly #pool: UpstreamPool
  readonly #after: After
  #giveUp: (reason: NoToken) => void = () => undefined

  /** @param ca PEM text of the authorities to trust instead of the system's */
  constructor(config: OAuth2Config, ca: Buffer | undefined, after: After = systemAfter) {
    const url = new URL(config.tokenUrl)
    const { origin, host } = url
    this.#request = requestOf(config, url)
    this.#after = after
    this.#pool = new UpstreamPool(
      { name: config.tokenUrl, origin, basePath: '', socketPath: undefined, host },
      {
        timeouts: { connect: DEADLINE, firstByte: DEADLINE, idle: DEADLINE },
        maxConnections: 1,
        connectionAge: DEADLINE,
        // A body that is not whole is no JSON object.
        closeDelimited: 'accept',
        tls: { ...(ca && { ca }) },
      },
    )
  }

  /** Asks for a token; not while it is being asked. Rejects with NoToken. */
  async ask(): Promise<GrantedToken> {
    return readTokenAnswer(await this.#answer())
  }

  #answer(): Promise<TokenAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<TokenAnswer>()
    this.#giveUp = (reason) => {
      reject(reason)
      reader.cancel(new Fault('upstream_timeout', { detail: reason.message }))
    }
    const stop = this.#after(DEADLINE, () => this.#giveUp(new NoToken('it did not answer within 5 s')))
    const reader = this.#pool.send(this.#request, (error, response) => {
      if (response === undefined) reject(new NoToken(`it cannot be asked (${wordFor(error)})`))
      else void wholeOf(response.body).then((body) => resolve({ ...response, body }), reject)
    })
    return promise.finally(stop)
  }

  close(): Promise<void> {
    this.#giveUp(new NoToken('the backend was closed'))
    return this.#pool.close()
  }
}

const TOO_LARGE = 'its answer is larger than 64 KiB'

async function wholeOf(body: UpstreamResponse['body']): Promise<Buffer> {
  if (Buffer.isBuffer(body)) {
    if (body.length > LARGEST) throw new NoToken(TOO_LARGE)
    return body
  }
  const stream = readableOf(body)
  try {
    return await readBody(stream, LARGEST)
  } catch (error) {
    const large = error instanceof Fault && error.code === 'body_too_large'
    throw new NoToken(large ? TOO_LARGE : 'its answer broke off')
  } finally {
    stream.destroy()
  }
}

/** A failure as one word or a sentence of ours: messages of sockets may name certificates and addresses. */
function wordFor(error: Error | null): string {
  if (error instanceof Fault) return error.message
  return error !== null && 'code' in error && typeof error.code === 'string' ? error.code : 'no connection'
}

function requestOf(config: OAuth2Config, { pathname, search }: URL): UpstreamRequest {
  const lines = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'content-type': 'application/x-www-form-urlencoded',
    'user-agent': 'postern',
    ...(config.clientAuthentication === 'basic' && { authorization: clientCredentials(config) }),
  }
  return {
    method: 'POST',
    path: pathname + search,
    headers: Object.entries(lines).reduce<HeaderText>(
      (text, [name, value]) => followedBy(text, headerLine(name, value)),
      NO_HEADERS,
    ),
    host: undefined,
    body: Buffer.from(formOf(config).toString()),
    length: undefined,
    eager: true,
    fresh: true,
    timeouts: undefined,
  }
}

/** RFC 6749 §2.3.1: id and secret are encoded as in a form before they are joined. */
function clientCredentials({ clientId, clientSecret }: OAuth2Config): string {
  const joined = [clientId, clientSecret].map(formEncode).join(':')
  return `Basic ${Buffer.from(joined).toString('base64')}`
}

const formEncode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

function formOf(config: OAuth2Config): URLSearchParams {
  const { scope, audience, resource, clientId, clientSecret } = config
  return new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...(config.clientAuthentication === 'post' && { client_id: clientId, client_secret: clientSecret }),
  })
}

/** The syntax `token68` (RFC 7235 §2.1), which bearer tokens have too (RFC 6750 §2.1). */
const TOKEN68 = /^[A-Za-z0-9\-._~+/]+=*$/
/** The most characters of a token. A longer one fits into no upstream's limit of header size. */
const LONGEST_TOKEN = 16 * 1024

export const isToken68 = (text: string): boolean => text.length <= LONGEST_TOKEN && TOKEN68.test(text)

const JSON_TYPE = /^application\/json\s*(?:;|$)/i
const LIMITS = { depth: 20, nodes: 2000 }

/** The errors of a refusal that are logged (RFC 6749 §5.2, RFC 8707 §2). Other text of the answer is never logged. */
const ERRORS: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
])

/** Reads the endpoint's answer (RFC 6749 §5.1). Throws NoToken. */
function readTokenAnswer(answer: TokenAnswer): GrantedToken {
  const { statusCode: status } = answer
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

function errorOf(members: JsonObject | undefined): string {
  const error = members?.['error']
  return typeof error === 'string' && ERRORS.has(error) ? ` (${error})` : ''
}

function membersOf({ headers, body }: TokenAnswer): JsonObject | undefined {
  if (!JSON_TYPE.test((headers['content-type'] ?? '').trim())) return undefined
  try {
    const value = parseJson(body, LIMITS)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Seconds as a number; some issuers write it as text. */
const SECONDS = /^-?\d+(?:\.\d+)?(?:[eE]\+?\d+)?$/

function lifeOf(given: JsonValue | undefined): number | undefined {
  if (given === undefined || given === null) return undefined
  const text = typeof given === 'string' ? given : JSON.stringify(given)
  if (!SECONDS.test(text)) throw new NoToken('its expires_in is no number')
  return Number(text) * 1000
}
