import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { attackUpstream, bytesOf, type AttackedUpstream } from '../support/attacked.ts'
import { exchangeRaw, sendRaw } from '../support/raw-http.ts'
import { answerJson } from '../support/start-upstream.ts'
import { basic } from '../support/tokens.ts'

/** T2.7: what a client sends never makes a line of the log that was not written, nor moves a terminal's cursor. */

let http: AttackedUpstream
let seen = 0

beforeAll(async () => {
  http = await attackUpstream()
})
beforeEach(() => {
  seen = http.gateway.logLines().length
})
afterAll(() => http.close())

const written = (): readonly string[] => http.gateway.logLines().slice(seen)

const TRICKS = [
  '\r\n{"level":"info","event":"forged"}\r\n',
  '\n{"level":"info","event":"forged"}',
  '\x1b[2J\x1b[31mforged',
  '\u2028{"event":"forged"}',
  '\u2029forged',
  '\x85forged',
  '\x9b31mforged',
  '\u202egnp.forged',
  '","event":"forged","x":"',
  '\0forged',
  '\x7fforged',
]
const TARGET = '/api/1.0/b/ACME/fund-data/fund-list'

/** No character that ends a line or that a terminal acts on, and nothing but one JSON object a line. */
function expectHonest(lines: readonly string[]): void {
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) {
    expect(line).toMatch(/^[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*\n$/)
    expect((JSON.parse(line) as { event: string }).event).not.toBe('forged')
  }
}

const utf8 = (text: string): string => Buffer.from(text).toString('latin1')
const escaped = (text: string): string => encodeURIComponent(text)

describe('T2.7 forged log lines', () => {
  it.each(TRICKS)('C2.6 come from no target, header or credential that holds %j', async (trick) => {
    const requests = [
      { target: `${TARGET}/${escaped(trick)}` },
      { target: `/api/1.0/b/${escaped(trick)}/fund-data/fund-list` },
      { target: `${TARGET}?${escaped(trick)}` },
      { target: `${TARGET}/${utf8(trick)}` },
      { target: TARGET, lines: `User-Agent: ${utf8(trick)}\r\n` },
      { target: TARGET, lines: `X-Request-Id: ${utf8(trick)}\r\n` },
      { target: TARGET, lines: `X-Request-Id: ${escaped(trick)}${utf8('\u2028\u202e')}\r\n` },
      { target: TARGET, lines: `Accept: ${utf8(trick)}\r\n` },
      { target: TARGET, lines: `Content-Type: ${utf8(trick)}\r\n` },
      { target: TARGET, lines: `X-Forwarded-For: ${utf8(trick)}\r\n` },
      { method: utf8(trick), target: TARGET },
    ]
    for (const { lines = '', ...request } of requests)
      await exchangeRaw(
        http.port,
        bytesOf({ ...request, lines: `${http.authorization}Connection: close\r\n${lines}` }),
      )
    await sendRaw(http.port, bytesOf({ target: TARGET, lines: `Authorization: Bearer ${utf8(trick)}\r\n` }))
    const credentials = `Authorization: ${basic(trick, trick)}\r\nContent-Type: application/x-www-form-urlencoded\r\n`
    for (const body of [
      `grant_type=password&username=${escaped(trick)}&password=${escaped(trick)}&scope=openid`,
      `grant_type=${escaped(trick)}`,
    ]) {
      const lines = `${credentials}Content-Length: ${body.length}\r\n`
      await sendRaw(http.port, bytesOf({ method: 'POST', target: '/connect/token', lines, body }))
    }
    expectHonest(written())
  })

  it('C2.6 come from nothing that an upstream says', async () => {
    for (const trick of TRICKS) {
      http.upstream.behave((connection) =>
        connection.raw(`HTTP/1.1 500 ${trick}\r\nX: ${trick}\r\nContent-Length: 0\r\n\r\n`),
      )
      await sendRaw(http.port, bytesOf({ target: TARGET, lines: http.authorization }))
      http.upstream.behave(answerJson({ Errors: [{ Code: trick, Message: trick }] }, { status: 400 }))
      await sendRaw(http.port, bytesOf({ target: TARGET, lines: http.authorization }))
    }
    expectHonest(written())
  })

  it('C2.6 hold no token and no secret, also where they stand in the wrong place', async () => {
    const token = http.authorization.trim().split(' ').at(-1) ?? ''
    const password = 'correct-horse-battery'
    const wrong = [
      { target: `${TARGET}?access_token=${token}` },
      { target: `/api/1.0/b/${token}/fund-data/fund-list` },
      { target: TARGET, lines: `X-Request-Id: ${token}\r\n` },
      { target: TARGET, lines: `User-Agent: Bearer ${token}\r\n` },
      { target: TARGET, lines: `Authorization: bearer ${token}\r\n` },
      { target: TARGET, lines: `Authorization: Bearer ${token}x\r\n` },
      { target: TARGET, lines: `Authorization: ${basic('acme-books', password)}\r\n` },
      { target: `/connect/token?password=${password}`, method: 'POST' },
    ]
    for (const request of wrong) await sendRaw(http.port, bytesOf(request))
    expect(written().length).toBeGreaterThanOrEqual(wrong.length)
    const [, payload = '', signature = ''] = token.split('.')
    for (const secret of [payload, signature, password, basic('acme-books', password).slice(6)])
      expect(written().filter((line) => line.includes(secret))).toEqual([])
  })
})
