import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withFunds } from '../support/changed-funds.ts'
import { sendRaw, type RawResponse } from '../support/raw-http.ts'
import { bearer, expectFault, requestBytes } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** C8.4: no answer of 200 holds JSON that is none. On the wire: whole bodies, streamed ones, slow ones, cut anywhere. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
/** More than is verified before the client gets anything. */
const LARGE = 300_000

let upstream: Upstream
const gateways: Partial<Record<'bare' | 'envelope', StartedPostern>> = {}
const tokens: Partial<Record<'bare' | 'envelope', string>> = {}

beforeAll(async () => {
  upstream = await openUpstream()
  for (const payload of ['bare', 'envelope'] as const) {
    const gateway = await startPostern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: withFunds({ payload }),
    })
    gateways[payload] = gateway
    tokens[payload] = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  }
})
afterAll(async () => {
  await Promise.all(Object.values(gateways).map((gateway) => gateway.close()))
  await upstream.close()
})

type Framing = 'length' | 'chunked'

/** The upstream sends these pieces, `pause` milliseconds apart, and `more` lines in its head. */
function answering(pieces: readonly (string | Buffer)[], framing: Framing, pause = 0, more = ''): void {
  const bytes = pieces.map((piece) => Buffer.from(piece))
  const length = bytes.reduce((sum, each) => sum + each.length, 0)
  upstream.behave((connection) => {
    const frame = framing === 'length' ? `Content-Length: ${length}` : 'Transfer-Encoding: chunked'
    connection.raw(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${more}${frame}\r\n\r\n`)
    void (async () => {
      for (const [at, each] of bytes.entries()) {
        if (at > 0 && pause > 0) await wait(pause)
        if (framing === 'chunked') connection.raw(`${each.length.toString(16)}\r\n`)
        connection.raw(each)
        if (framing === 'chunked') connection.raw('\r\n')
      }
      if (framing === 'chunked') connection.raw('0\r\n\r\n')
    })()
  })
}

const ask = (payload: 'bare' | 'envelope'): Promise<RawResponse> =>
  sendRaw(gateways[payload]!.port, requestBytes({ target: LIST, headers: bearer(tokens[payload] ?? '') }))

const fateOf = (payload: 'bare' | 'envelope'): Promise<'whole' | 'cut'> =>
  ask(payload).then(
    ({ whole }) => (whole ? 'whole' : 'cut'),
    () => 'cut' as const,
  )

const filler = JSON.stringify('x'.repeat(LARGE))
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const envelope = (data: string): string => `{"Errors":[],"Data":${data}}`

type Cases = Readonly<Record<'bare' | 'envelope', readonly (readonly [string, string | Buffer])[]>>

const BROKEN: Cases = {
  envelope: [
    ['HTML', '<html><body>Log in</body></html>'],
    ['half an envelope', '{"Errors":[],"Data":{"a":'],
    ['no envelope', '{"a":1}'],
    ['an envelope without Data', '{"Errors":[]}'],
    ['more than an envelope', `${envelope('{}')}{}`],
    ['an envelope whose error has no message', '{"Errors":[{"Code":"A"}],"Data":{}}'],
    ['an envelope whose last Data is none', '{"Errors":[],"Data":{},"D\\u0061ta":[]}'],
    ['an envelope that is nested too deeply', envelope(`{"a":${nested(10_000)}}`)],
  ],
  bare: [
    ['HTML', '<html><body>Log in</body></html>'],
    ['half an object', '{"a":'],
    ['two values', '{} {}'],
    ['lists that are nested too deeply', nested(10_001)],
  ],
}

const LARGE_BROKEN: Cases = {
  envelope: [
    ['that ends early', envelope(`{"a":${filler}}`).slice(0, -1)],
    ['that breaks in the middle', envelope(`{"a":${filler},<html>,"b":${filler}}`)],
    ['that is no envelope', `{"a":${filler}}`],
    ['with something behind it', `${envelope(`{"a":${filler}}`)}x`],
    ['whose error has no message', `{"Errors":[{"Code":"A"}],"Data":{"a":${filler}}}`],
  ],
  bare: [
    ['that ends early', `[${filler},`],
    ['that breaks in the middle', `[${filler},<html>,${filler}]`],
    [
      'that is not UTF-8',
      Buffer.concat([Buffer.from(`[${filler},"`), Buffer.from([0xff]), Buffer.from('"]')]),
    ],
    ['with something behind it', `[${filler}]]`],
  ],
}

describe.each(['bare', 'envelope'] as const)('C8.4 an upstream of payload %s', (payload) => {
  it.each(BROKEN[payload])('that answers %s is a 500', async (_case, body) => {
    for (const framing of ['length', 'chunked'] as const) {
      answering([body], framing)
      expectFault(await ask(payload), 'upstream_broken')
    }
  })

  it('that says that nothing is coded, and answers HTML, is a 500', async () => {
    answering(['<html>'], 'length', 0, 'Content-Encoding: Identity\r\n')
    expectFault(await ask(payload), 'upstream_broken')
  })

  it.each(LARGE_BROKEN[payload])(
    'whose large answer is one %s is cut, however it is framed',
    async (_case, body) => {
      for (const framing of ['length', 'chunked'] as const) {
        answering([body], framing)
        expect(await fateOf(payload)).toBe('cut')
      }
    },
  )

  it('that answers 10,000 levels, repeated names and a lone surrogate is passed whole', async () => {
    const data = `{"a":${nested(9_998)},"a":"\\ud800"}`
    answering(
      [payload === 'bare' ? data : `{"Errors":5,"Data":5,"Err\\u006frs":[],"Data":${data}}`],
      'length',
    )
    const { status, body } = await ask(payload)
    expect([status, body.endsWith(`"Data":${data}}`)]).toEqual([200, true])
  })

  it('whose large answer is JSON is passed whole', async () => {
    for (const framing of ['length', 'chunked'] as const) {
      const data = `{"a":${filler}}`
      answering([payload === 'bare' ? data : envelope(data)], framing)
      const { body, whole } = await ask(payload)
      expect([whole, body]).toEqual([true, envelope(data)])
    }
  })
})

describe('C8.4 an answer that comes slowly', () => {
  it('C8.6 of null is empty Data', async () => {
    answering(['nu', 'll'], 'chunked', 1200)
    expect((await ask('bare')).body).toBe('{"Errors":[],"Data":{}}')
  })

  it('C7.4 that begins with a byte order mark in two pieces is passed without it', async () => {
    const payload = Buffer.from('\ufeff{"a":1}')
    answering([payload.subarray(0, 2), payload.subarray(2, 3), payload.subarray(3)], 'chunked', 700)
    expect((await ask('bare')).body).toBe('{"Errors":[],"Data":{"a":1}}')
  })

  it('and breaks is cut, and the log tells why', async () => {
    answering(['{"a":', '}'], 'chunked', 1200)
    expect(await fateOf('bare')).toBe('cut')
    const cut = () => gateways.bare!.log().find((line) => line['event'] === 'answer_cut')
    await expect.poll(cut).toMatchObject({ level: 'warn', backend: 'funds', reason: 'upstream_broken' })
  })
})
