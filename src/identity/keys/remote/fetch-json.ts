import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { readBody } from '../../../base/http/body/read-body.ts'

interface JsonRequest {
  readonly url: string
  /** The name of the answer in error messages: `the key set`. */
  readonly what: string
  readonly accept: string
  /** The largest body of an answer, in bytes. */
  readonly largest: number
  readonly signal: AbortSignal
  /** Only with a body. */
  readonly headers?: Readonly<Record<string, string>>
  /** The form of a POST. Without it the request is a GET. */
  readonly form?: URLSearchParams
  /** Whether the answer must say that it is `application/json`. */
  readonly strictType?: boolean
}

export class UnexpectedStatus extends Error {
  override readonly name = 'UnexpectedStatus'
  readonly status: number

  constructor(what: string, status: number) {
    super(`${what} answered ${status}`)
    this.status = status
  }
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** RFC 8259 §8.1: who reads JSON may ignore the mark. Some file servers and editors put it before a key set. */
export const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    ? bytes.subarray(BYTE_ORDER_MARK.length)
    : bytes

/**
 * The bytes of an answer of an issuer, without a byte order mark at their beginning. Redirects are not followed: the configuration, or the issuer's metadata, says
 * which server answers. Rejects with UnexpectedStatus; with RangeError if the body is too large, or breaks off; with
 * another Error if there is no answer, or the signal aborts.
 */
export async function fetchJsonBytes(request: JsonRequest): Promise<Buffer> {
  const { url, what, accept, form, headers, signal } = request
  const response = await fetch(url, {
    headers: { accept, ...headers },
    ...(form !== undefined && { method: 'POST', body: form }),
    redirect: 'error',
    signal,
  })
  const refusal = refusalOf(response, request)
  if (refusal === undefined) return readBounded(response, request)
  await response.body?.cancel()
  throw refusal === 'type'
    ? new TypeError(`${what} is no application/json`)
    : new UnexpectedStatus(what, refusal)
}

/** The status, or the type, if it is another one than expected. */
function refusalOf({ status, headers }: Response, { strictType }: JsonRequest): number | 'type' | undefined {
  if (status !== 200) return status
  if (strictType !== true) return undefined
  const [type = ''] = (headers.get('content-type') ?? '').split(';')
  return type.trim().toLowerCase() === 'application/json' ? undefined : 'type'
}

async function readBounded({ body }: Response, { what, largest }: JsonRequest): Promise<Buffer> {
  if (body === null) return Buffer.alloc(0)
  const stream = Readable.fromWeb(body)
  try {
    return withoutMark(await readBody(stream, largest))
  } catch (cause) {
    throw new RangeError(`${what} is too large, or broke off`, { cause })
  } finally {
    stream.destroy()
  }
}
