import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { recordsOf } from '../../support/audit-files.ts'
import {
  actionOf,
  CREATE,
  eventsOf,
  JSON_BODY,
  LIST,
  NEW_FUND,
  recordsOfCall,
  withActions,
} from '../../support/audited-calls.ts'
import { eventually } from '../../support/eventually.ts'
import { startOver } from '../../support/over-module.ts'
import { openRaw, type RawResponse } from '../../support/raw-http.ts'
import { bearer, requestBytes, send, type Sent } from '../../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { answerJson, openUpstream, startUpstream, type Upstream } from '../../support/start-upstream.ts'
import { at } from '../../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { withAudit } from '../../support/with-audit.ts'

const BYTES = { 'Content-Type': 'application/octet-stream' }
const audit = (value: unknown): Record<string, string> => ({
  'X-Postern-Audit': Buffer.from(JSON.stringify(value)).toString('base64url'),
})

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withActions(
      actionOf('kept', {
        POST: { body: { required: true }, auditFields: ['Status', 'Limit', '/Address/City', 'Missing'] },
      }),
    ),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})
beforeEach(() => upstream.behave(answerJson({ ok: true })))

const ask = ({ headers, ...sent }: Sent): Promise<RawResponse> =>
  send(gateway, { ...sent, headers: { ...bearer(token), ...headers } })

function hmacOf(body: string | Buffer): string {
  const hash = gateway.world.audit.bodyHash()
  hash.update(Buffer.from(body))
  return hash.digest()
}

describe('C12.2.2 the body of a call', () => {
  it('C12.2.2 is recorded as type, length and HMAC of the bytes that the client sent', async () => {
    const answer = await ask({ method: 'POST', target: CREATE, headers: JSON_BODY, body: NEW_FUND })
    expect(recordsOfCall(gateway, answer)[0]).toMatchObject({
      call: { version: 1, type: 'application/json', bytes: NEW_FUND.length, body: hmacOf(NEW_FUND) },
    })
  })

  it('C12.2.2 is hashed as it came, also where the upstream is sent another format', async () => {
    const xml = '<ApiRequest><Code>NEW1</Code><Name>A fund</Name></ApiRequest>'
    const headers = { 'Content-Type': 'application/xml; charset=utf-8' }
    const answer = await ask({ method: 'POST', target: CREATE, headers, body: xml })
    expect(answer.status, answer.body).toBe(200)
    expect(upstream.requests.at(-1)?.headers['content-type']).toEqual(['application/json'])
    expect(recordsOfCall(gateway, answer)[0]).toMatchObject({
      call: { type: 'application/xml', bytes: xml.length, body: hmacOf(xml) },
    })
  })

  it('C12.2.2 that is large is hashed whole', async () => {
    const body = JSON.stringify({ Status: 'Active', filler: 'x'.repeat(700_000) })
    const answer = await ask({ method: 'POST', target: at('kept'), headers: JSON_BODY, body })
    expect(answer.status, answer.body).toBe(200)
    const [intent] = recordsOfCall(gateway, answer)
    expect(intent).toMatchObject({ call: { bytes: body.length, body: hmacOf(body) } })
    expect(intent?.values).toMatchObject({ 'change.sent.Status': 'Active' })
  })

  it('C12.2.2 is nowhere in the record where there is none', async () => {
    const becomes = await ask({ method: 'POST', target: at('upload') })
    const [intent] = recordsOfCall(gateway, becomes)
    expect(intent?.['call']).toEqual({ version: 1 })
  })
})

describe('C12.2.2 a body that streams', () => {
  it('C12.2.2 has a record of its own at its end, with length and HMAC', async () => {
    const body = randomBytes(300_000)
    const answer = await ask({ method: 'POST', target: at('upload'), headers: BYTES, body })
    expect(answer.status, answer.body).toBe(200)
    expect(upstream.requests.at(-1)?.body.equals(body)).toBe(true)
    const records = recordsOfCall(gateway, answer)
    expect(eventsOf(records)).toEqual(['call.intended', 'call.body_ended', 'call.settled'])
    const { seq } = records[0]!
    expect(records[0]?.['call']).toEqual({ version: 1, type: 'application/octet-stream' })
    expect(records[1]).toMatchObject({
      intent: seq,
      outcome: 'success',
      call: { type: 'application/octet-stream', bytes: body.length, body: hmacOf(body) },
    })
  })

  it('C12.2.2 of unknown length is passed on in its pieces, and hashed', async () => {
    const headers = { ...BYTES, 'Transfer-Encoding': 'chunked' }
    const answer = await ask({
      method: 'POST',
      target: at('upload'),
      headers,
      body: '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n',
    })
    expect(answer.status, answer.body).toBe(200)
    expect(String(upstream.requests.at(-1)?.body)).toBe('abcde')
    expect(recordsOfCall(gateway, answer)[1]).toMatchObject({ call: { bytes: 5, body: hmacOf('abcde') } })
  })

  it('C12.2.2 that breaks off has its record too, of what had come', async () => {
    const before = recordsOf(gateway, 'call.body_ended').length
    const connection = await openRaw(gateway.port)
    const head = { ...BYTES, ...bearer(token), 'Content-Length': '1000' }
    connection.send(requestBytes({ method: 'POST', target: at('upload'), headers: head, body: 'abc' }))
    await eventually(() => expect(String(upstream.connections.at(-1)?.bytes)).toMatch(/\r\n\r\nabc$/))
    connection.destroy()
    await eventually(() => expect(recordsOf(gateway, 'call.body_ended')).toHaveLength(before + 1))
    expect(recordsOf(gateway, 'call.body_ended').at(-1)).toMatchObject({
      outcome: 'failed',
      call: { bytes: 3, body: hmacOf('abc') },
    })
    await eventually(() =>
      expect(recordsOf(gateway, 'call.settled').at(-1)).toMatchObject({ reason: 'client_gone' }),
    )
  })
})

describe('C12.2.2 parts of the body that are kept', () => {
  const body = {
    Status: 'Active',
    Limit: 1.5,
    Address: { City: 'Perth', Street: 'secret street' },
    Other: 'not kept',
  }
  const SENT = {
    'change.sent.Status': 'Active',
    'change.sent.Limit': '1.5',
    'change.sent./Address/City': 'Perth',
  }
  const change = (sent: Partial<Sent>) =>
    ask({ method: 'POST', target: at('kept'), headers: JSON_BODY, ...sent })

  it('C12.2.2 stand beside the record as they were sent, and no other part does', async () => {
    const answer = await change({ body: JSON.stringify(body) })
    const [intent] = recordsOfCall(gateway, answer)
    expect(intent?.values).toMatchObject(SENT)
    expect(JSON.stringify(intent)).not.toMatch(/secret street|not kept|Missing/)
  })

  it('C12.2.2 are read from XML and from a form too', async () => {
    const xml =
      '<ApiRequest><Status>Active</Status><Limit>1.5</Limit><Address><City>Perth</City></Address></ApiRequest>'
    const ofXml = await change({ headers: { 'Content-Type': 'application/xml' }, body: xml })
    expect(recordsOfCall(gateway, ofXml)[0]?.values).toMatchObject(SENT)
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const ofForm = await change({ headers, body: 'Status=Active&Limit=1.5' })
    expect(recordsOfCall(gateway, ofForm)[0]?.values).toMatchObject({ 'change.sent.Status': 'Active' })
  })

  it('C12.2.2 are cut at 256 bytes each, and may be hostile', async () => {
    const text = `\n\u2028"}{\u001b[31m${'é'.repeat(300)}`
    const answer = await change({ body: JSON.stringify({ Status: text }) })
    const kept = recordsOfCall(gateway, answer)[0]?.values['change.sent.Status'] ?? ''
    expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(256)
    expect(kept.endsWith('é…')).toBe(true)
  })
})

describe('C12.2.2 X-Postern-Audit of an upstream', () => {
  const create: Sent = { method: 'POST', target: CREATE, headers: JSON_BODY, body: NEW_FUND }

  it('C12.2.2 tells before and after, beside the outcome; the client never sees it', async () => {
    const values = {
      before: { Status: 'Active', Limit: 3, Gone: null },
      after: { Status: 'Closed', Tags: ['a'] },
    }
    upstream.behave(answerJson({}, { headers: audit(values) }))
    const answer = await ask(create)
    expect(answer.headers).not.toHaveProperty('x-postern-audit')
    const settled = recordsOfCall(gateway, answer)[1]
    expect(settled?.values).toEqual({
      'change.upstream.before.Status': 'Active',
      'change.upstream.before.Limit': '3',
      'change.upstream.before.Gone': 'null',
      'change.upstream.after.Status': 'Closed',
      'change.upstream.after.Tags': '["a"]',
    })
    expect(JSON.stringify(settled?.['personal'])).not.toContain('Closed')
  })

  it('C12.2.2 is taken from an upstream’s refusal too', async () => {
    const headers = audit({ before: { Status: 'Closed' } })
    upstream.behave(answerJson({ Errors: [{ Code: 'a', Message: 'b' }], Data: {} }, { status: 409, headers }))
    const answer = await ask(create)
    expect([answer.status, answer.headers['x-postern-audit']]).toEqual([409, undefined])
    expect(recordsOfCall(gateway, answer)[1]?.values).toEqual({ 'change.upstream.before.Status': 'Closed' })
  })

  it.each([
    ['no base64url', '{"a":1}'],
    ['no JSON', Buffer.from('a').toString('base64url')],
    ['no object', Buffer.from('[1]').toString('base64url')],
    ['over 4 KiB', audit({ a: 'x'.repeat(5000) })['X-Postern-Audit']!],
    ['too deep', audit(JSON.parse('{"a":'.repeat(9) + '1' + '}'.repeat(9)))['X-Postern-Audit']!],
    [
      'too many values',
      audit(Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, n])))['X-Postern-Audit']!,
    ],
  ])(
    'C12.2.2 is left out where it is %s; the log tells, and the answer is the same',
    async (_what, header) => {
      upstream.behave(answerJson({ ok: true }, { headers: { 'X-Postern-Audit': header } }))
      const answer = await ask(create)
      expect([answer.status, answer.headers['x-postern-audit']]).toEqual([200, undefined])
      expect(recordsOfCall(gateway, answer)[1]?.values).toEqual({})
      expect(gateway.log()).toContainEqual(
        expect.objectContaining({ event: 'audit_header_ignored', requestId: answer.headers['x-request-id'] }),
      )
    },
  )

  it('C12.2.2 reaches no client of a read either, nor where no trail is kept', async () => {
    upstream.behave(answerJson({}, { headers: audit({ after: { Status: 'secret' } }) }))
    expect((await ask({ target: LIST })).headers).not.toHaveProperty('x-postern-audit')
    const silent = await startUpstream(answerJson({}, { headers: audit({ after: { Status: 'secret' } }) }))
    const off = await postern({
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: silent.url },
      change: (loaded) => withAudit(loaded, { enabled: false }),
    })
    const { access_token } = await issueToken(off, { scope: ALL_AT_ACME })
    const answer = await send(off, { ...create, headers: { ...JSON_BODY, ...bearer(access_token) } })
    expect([answer.status, answer.headers['x-postern-audit']]).toEqual([200, undefined])
  })

  it('C12.2.2 is taken from each answer to a module, which does not see it', async () => {
    const {
      upstream: service,
      gateway: over,
      ask: send,
    } = await startOver(
      `{ answer: async ({ forward }) => {
        const first = await forward()
        await forward({ method: 'PUT', path: '/second', body: { kind: 'none' } })
        return { status: 200, body: { kind: 'value', value: { names: Object.keys(first.headers) } } }
      } }`,
    )
    service.behave((connection) => {
      const values = connection.request.method === 'PUT' ? { after: { B: 2 } } : { after: { A: 1 } }
      answerJson({ ok: true }, { headers: audit(values) })(connection)
    })
    const answer = await send(create)
    expect(answer.status, answer.body).toBe(200)
    expect(answer.body).not.toContain('x-postern-audit')
    const records = recordsOfCall(over, answer)
    expect(eventsOf(records)).toEqual(['call.intended', 'call.settled'])
    expect(records[1]?.values).toEqual({ 'change.upstream.after.A': '1', 'change.upstream.after.B': '2' })
  })
})
