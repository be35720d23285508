import { STATUS_CODES } from 'node:http'
import type { Answer } from '../contracts/exchange.ts'
import { isHeaderValue, isToken } from '../http/header-text.ts'

/**
 * An answer as bytes, for a connection on which there was no request that could be read. The last on it. Of its body
 * only what is in memory is sent.
 * @param head no body is sent, for a request that was HEAD as far as one can tell
 */
export function answerBytes(answer: Answer, id: string, now: Date, head: boolean): Buffer {
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  const lines = [
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`,
    `X-Request-Id: ${id}`,
    ...Object.entries(answer.headers).flatMap(([name, value]) => headerLines(name, value)),
    `Date: ${now.toUTCString()}`,
    `Content-Length: ${bytes.length}`,
    'Connection: close',
  ]
  const start = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  return head ? start : Buffer.concat([start, bytes])
}

function headerLines(name: string, value: string | readonly string[]): readonly string[] {
  const values = typeof value === 'string' ? [value] : value
  return values
    .filter((each) => isToken(name) && isHeaderValue(each) && name.toLowerCase() !== 'content-length')
    .map((each) => `${name}: ${each}`)
}
