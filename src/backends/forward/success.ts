import type { Readable } from 'node:stream'
import type { BackendBody, Call } from '../../contracts/backend.ts'
import { hasNoContent } from '../../http/head.ts'
import { Fault } from '../../kernel/faults.ts'
import type { UpstreamResponse } from '../../upstream/reader.ts'
import { isOfFormat } from './response.ts'

/**
 * The body of an upstream's success.
 * @throws Fault `upstream_broken` where an enveloped action's answer is of another type or coding than it must be
 */
export function successBody(call: Call, response: UpstreamResponse, format: 'json' | 'xml'): BackendBody {
  const { statusCode, headers, body } = response
  const contentType = headers['content-type']
  const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
  if (call.action.produces === undefined && call.method !== 'HEAD' && !isOfRanges(statusCode, contentType))
    requireReadable(call, body, headers, format)
  const whole = Buffer.isBuffer(body)
  if (call.method === 'HEAD' || hasNoContent(statusCode)) {
    if (!whole) body.destroy()
    return call.method === 'HEAD' ? { kind: 'none', contentType, length } : NONE
  }
  return whole
    ? { kind: 'bytes', bytes: body, contentType }
    : { kind: 'stream', stream: body, contentType, length }
}

const NONE: BackendBody = { kind: 'none' }

const PARTIAL_CONTENT = 206

/** Several ranges at once (RFC 9110 §14.6): what the type of the whole is stands in each part. */
const isOfRanges = (status: number, contentType = ''): boolean =>
  status === PARTIAL_CONTENT && /^multipart\/byteranges\s*;/i.test(contentType)

/** An enveloped action's answer must be what the configuration says; compressed only if the client asked for it itself. */
function requireReadable(
  call: Call,
  body: Buffer | Readable,
  headers: UpstreamResponse['headers'],
  format: 'json' | 'xml',
): void {
  if (Buffer.isBuffer(body) && body.length === 0) return
  const coding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  const plain = coding === 'identity' || 'accept-encoding' in call.headers
  if (plain && isOfFormat(headers['content-type'], format)) return
  if (!Buffer.isBuffer(body)) body.destroy()
  throw new Fault('upstream_broken', { detail: `unexpected Content-${plain ? 'Type' : 'Encoding'}` })
}
