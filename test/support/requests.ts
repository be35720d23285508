import { expect } from 'vitest'
import { type FaultRow, FAULTS } from '../../src/base/kernel/fault-table.ts'
import type { FaultCode } from '../../src/base/kernel/faults.ts'
import { type Describing, expectDocumented } from './documented.ts'
import { type RawResponse, sendRaw } from './raw-http.ts'

/** A request as a client means it; what is not given is as a careful client would send it. */
export interface Sent {
  readonly method?: string
  /** The request target, exactly as it goes into the request line. */
  readonly target: string
  /** An array is several lines; undefined leaves a line out that would be sent otherwise (`Host`). */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Sent with its Content-Length, unless the headers say how it is framed. */
  readonly body?: string | Buffer
  /** What stands for `HTTP/1.1` in the request line. */
  readonly version?: string
}

/** The bytes of a request: nothing of it is normalised, encoded or checked. */
export function requestBytes({ method = 'GET', target, headers = {}, body = '', version }: Sent): Buffer {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const framed = names.has('content-length') || names.has('transfer-encoding')
  const bytes = Buffer.from(body)
  const given: Sent['headers'] = {
    ...(!names.has('host') && { Host: '127.0.0.1' }),
    ...headers,
    ...(bytes.length > 0 && !framed && { 'Content-Length': String(bytes.length) }),
  }
  const lines = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each) => `${name}: ${each}\r\n`),
  )
  const head = `${method} ${target} ${version ?? 'HTTP/1.1'}\r\n${lines.join('')}\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes])
}

/**
 * Sends a request on a connection of its own. Of a service with a description of its API, it makes sure that the
 * description has this status (C11.3.3): every test that calls an operation proves a part of it.
 */
export async function send(
  of: { readonly port: number } & Partial<Describing>,
  sent: Sent,
): Promise<RawResponse> {
  const response = await sendRaw(of.port, requestBytes(sent), { head: sent.method === 'HEAD' })
  expectDocumented(of, sent, response)
  return response
}

/** The header of a bearer token. */
export const bearer = (token: string): { readonly Authorization: string } => ({
  Authorization: `Bearer ${token}`,
})

/** A form as browsers and client libraries write it. */
export const form = (fields: Readonly<Record<string, string>>) => ({
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
})

export const REQUEST_ID = /^[\w-]{16,64}$/

const XML_OF: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escaped = (text: string): string => text.replace(/[&<>]/g, (character) => XML_OF[character] ?? '')

/** An enveloped failure of one error, byte for byte (C2.1, C2.2). */
export const envelopeOf = (format: 'json' | 'xml', code: string, message: string): string =>
  format === 'json'
    ? `{"Errors":[{"Code":${JSON.stringify(code)},"Message":${JSON.stringify(message)}}],"Data":{}}`
    : '<?xml version="1.0" encoding="UTF-8"?>' +
      `<ApiResponse><Errors><Error><Code>${code}</Code><Message>${escaped(message)}</Message></Error></Errors>` +
      '<Data/></ApiResponse>'

interface ExpectedWords {
  readonly format?: 'json' | 'xml'
  /** What a 400 adds to its row's text. */
  readonly say?: string
  /** What stands in the place of `{offered}`. Absent: anything may. */
  readonly offered?: string
}

/**
 * That an answer is this fault, whole: status, envelope, headers, and the fixed text of the table (C2.1 to C2.6). For a
 * 400 `say` is what is told beside the fixed text, of which a piece is enough.
 */
export function expectFault(
  response: RawResponse,
  code: FaultCode,
  { format = 'json', say, offered }: ExpectedWords = {},
): void {
  const row: FaultRow = FAULTS[code]
  const { headers, body } = response
  expect(response.status, body).toBe(row.status)
  if (row.offering !== undefined && (offered !== undefined || !body.includes(row.text))) {
    const [before = '', after = ''] = envelopeOf(format, row.wire, row.offering).split('{offered}')
    expect(body.startsWith(before) && body.endsWith(after), body).toBe(true)
    expect(body).toContain(offered ?? '')
  } else if (say === undefined && !body.includes(escaped(row.text) + ' ')) {
    expect(body).toBe(envelopeOf(format, row.wire, row.text))
  } else {
    expect(row.status).toBe(400)
    expect(body).toContain(format === 'json' ? `"Message":"${row.text} ` : `<Message>${row.text} `)
    expect(body).toContain(say ?? '')
  }
  expect(headers).toMatchObject({
    'content-type': `application/${format}; charset=utf-8`,
    'cache-control': 'no-store',
    vary: 'Accept',
  })
  expect(headers['x-request-id']).toMatch(REQUEST_ID)
}
