import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { eventsOf, recordsOfCall } from '../support/audited-calls.ts'
import { FORM_TYPE, JSON_TYPE, MadeBodies, type Outcome, XML_TYPE } from '../support/made-bodies.ts'
import { bearer, requestBytes } from '../support/requests.ts'
import { answerJson } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const READ = 'scopes: { any: [fund.read] }'
const ANY = 'body: { required: false }'
const FIVE = "['{body}', '{body}', '{body}', '{body}', '{body}']"
const CLOSED =
  'body: { schema: { type: object, additionalProperties: false, properties: { a: { type: string } } } }'

const ACTIONS = {
  four: `{ POST: { ${READ}, ${ANY}, upstream: { body: { template: ['{body}', '{body}', '{body}'] } } } }`,
  five: `{ POST: { ${READ}, ${ANY}, upstream: { body: { template: ${FIVE} } } } }`,
  many: `{ POST: { ${READ}, ${ANY}, upstream: { body: { template: [${"'{body}', ".repeat(1000)}] } } } }`,
  manyXml: `{ POST: { ${READ}, ${CLOSED}, upstream: { body: { format: xml, template: { r: { a: [${"'{body/a}', ".repeat(999)}] } } } } } }`,
  manyForm: `{ POST: { ${READ}, ${CLOSED}, upstream: { body: { format: form, template: { a: [${"'{body/a}', ".repeat(1000)}] } } } } }`,
  setting: `{ POST: { ${READ}, body: { schema: { type: object, required: [id], properties: { id: { type: integer } } } }, upstream: { path: '/{body/id}', body: { set: { /company: '{business}' }, require: { /no: 7 } } } } }`,
  requiring: `{ POST: { ${READ}, ${ANY}, upstream: { body: { require: { /company: '{business.tenant}' } } } } }`,
  values: `{ POST: { ${READ}, ${ANY}, upstream: { body: { template: { a: '{business.hostile}', b: 'x{business.hostile}' } } } } }`,
  xmlValue: `{ POST: { ${READ}, ${ANY}, upstream: { body: { format: xml, template: { a: '{business.control}' } } } } }`,
  xmlCaller: `{ POST: { ${READ}, ${CLOSED}, upstream: { body: { format: xml, template: { a: '{body/a}' } } } } }`,
  secret: `{ POST: { ${READ}, ${ANY}, upstream: { body: { template: { key: { env: BODY_KEY }, a: '{body/a}' } } } } }`,
  asked: `{ GET: { ${READ}, upstream: { method: POST, retries: 5, body: { template: { of: '{business}' } } } } }`,
  unrecorded: `{ GET: { ${READ}, audit: none, auditReason: a search, upstream: { method: POST, body: { template: { of: '{business}' } } } } }`,
  kept: `{ POST: { ${READ}, ${CLOSED}, auditFields: [a], upstream: { body: { template: { z: '{body/a}' } } } } }`,
}

const HOSTILE = '"\'{business}{{x}}${x}\n]]>&amp;\u2028'

const withValues = (loaded: Configuration): Configuration => {
  const { directory } = loaded
  const values = { tenant: 't-7', hostile: HOSTILE, control: 'a\u0001' }
  const businesses = Object.entries(directory.businesses).map(([code, one]) => [code, { ...one, values }])
  return { ...loaded, directory: { ...directory, businesses: Object.fromEntries(businesses) } }
}

const KEY = 'key-{business}-of-the-service'

let made: MadeBodies
beforeAll(async () => {
  made = await MadeBodies.open(ACTIONS, { change: withValues, environment: { BODY_KEY: KEY } })
})
afterAll(() => made.close())
beforeEach(() => made.upstream.behave(answerJson({ ok: true })))

const call = (...given: Parameters<MadeBodies['call']>): Promise<Outcome> => made.call(...given)

async function expectRefusal(status: number, code: string, ...given: Parameters<MadeBodies['call']>) {
  const { answer, sent } = await call(...given)
  expect(sent).toEqual([])
  expect(answer.status, answer.body).toBe(status)
  expect(made.gateway.log().findLast((line) => line['reason'] !== undefined)?.['reason']).toBe(code)
  return answer
}

const KIB = 1024

describe('T4.10 a body that is made takes no more than a limit', () => {
  it('C8.7 one of at most four times the limit is made on another thread, and is what it would be here', async () => {
    const body = JSON.stringify({ a: 'x'.repeat(900 * KIB), n: [1.5, null] })
    expect((await call('four', body)).bodies).toEqual([`[${body},${body},${body}]`])
    await expectRefusal(400, 'unsendable_argument', 'five', body)
  })

  it.each([
    ['many', JSON.stringify({ a: 'x'.repeat(60 * KIB) })],
    ['many', JSON.stringify({ a: 'x'.repeat(900 * KIB) })],
    ['manyXml', JSON.stringify({ a: '&'.repeat(60 * KIB) })],
    ['manyForm', JSON.stringify({ a: '&'.repeat(60 * KIB) })],
    ['manyForm', JSON.stringify({ a: '&'.repeat(900 * KIB) })],
  ])('C8.7 %s: a thousand times a body is 400', async (action, body) => {
    await expectRefusal(400, 'unsendable_argument', action, body)
  })

  it('C8.7 what path and `set` name is found in a large body too, with its digits', async () => {
    const filler = 'x'.repeat(200 * KIB)
    const given = `{"id":12345678901234567890,"no":7,"filler":"${filler}","company":"HOOLI"}`
    const { sent, bodies } = await call('setting', given)
    expect(sent[0]?.target).toBe('/12345678901234567890')
    expect(bodies).toEqual([`{"id":12345678901234567890,"no":7,"filler":"${filler}","company":"ACME"}`])
    await expectRefusal(400, 'body_invalid', 'setting', given.replace('"no":7', '"no":7.0'))
    await expectRefusal(400, 'body_invalid', 'setting', given.replace('"id"', '"ID"'))
  })
})

describe('T4.9 hostile values stay data in a body', () => {
  it('C8.7 a value of a business is text, whatever it holds', async () => {
    const { bodies } = await call('values')
    expect(JSON.parse(bodies[0] ?? '')).toEqual({ a: HOSTILE, b: `x${HOSTILE}` })
  })

  it('C8.7 what the format cannot hold is 500 if it is not the client’s, and 400 if it is', async () => {
    await expectRefusal(500, 'unsendable_value', 'xmlValue')
    await expectRefusal(400, 'unsendable_argument', 'xmlCaller', '{"a":"\\u0001"}')
    await expectRefusal(400, 'body_malformed', 'xmlCaller', '{"a":"\\ud800"}')
  })

  it('C8.7 what `require` wants is not told', async () => {
    const { body } = await expectRefusal(400, 'body_invalid', 'requiring', '{"company":"x"}')
    expect(body).not.toContain('t-7')
    expect((await call('requiring', '{"company":"t-7"}')).sent).toHaveLength(1)
  })

  it('C8.7 a secret is sent as it is, and told by no log and no answer', async () => {
    const { bodies, answer } = await call('secret', '{"a":"{business}"}')
    expect(JSON.parse(bodies[0] ?? '')).toEqual({ key: KEY, a: '{business}' })
    expect(made.gateway.logLines().join('') + answer.body).not.toContain(KEY)
  })
})

describe('a GET that is sent as a POST', () => {
  const GET = { method: 'GET' }

  it('C8.5 is never sent again', async () => {
    made.upstream.behave((connection) => connection.reset())
    const { sent } = await call('asked', '', JSON_TYPE, GET)
    expect(sent).toHaveLength(1)
  })

  it('C12.1.1 is recorded as a change, unless the configuration says `audit: none`', async () => {
    const { answer } = await call('asked', '', JSON_TYPE, GET)
    expect(eventsOf(recordsOfCall(made.gateway, answer))).toEqual(['call.intended', 'call.settled'])
    const { answer: quiet } = await call('unrecorded', '', JSON_TYPE, GET)
    expect(recordsOfCall(made.gateway, quiet)).toEqual([])
  })

  it('C8.7 a HEAD is sent as that POST too, with its body; a body of the client’s is refused', async () => {
    const { sent, bodies } = await call('asked', '', JSON_TYPE, { method: 'HEAD' })
    expect([sent[0]?.method, bodies[0]]).toEqual(['POST', '{"of":"ACME"}'])
    await expectRefusal(400, 'body_unexpected', 'asked', '{}', JSON_TYPE, GET)
  })
})

it('C12.2.2 hash, length and fields are of the client’s body', async () => {
  const hash = made.gateway.world.audit.bodyHash()
  const given = '{"a" : "kept"}'
  hash.update(Buffer.from(given))
  const { answer, bodies } = await call('kept', given)
  expect(bodies).toEqual(['{"z":"kept"}'])
  expect(recordsOfCall(made.gateway, answer)[0]).toMatchObject({
    call: { type: JSON_TYPE, bytes: given.length, body: hash.digest() },
  })
})

it('C4.11 a body that is cut off anywhere is sent in no part', async () => {
  const { access_token } = await issueToken(made.gateway, { scope: ALL_AT_ACME })
  const before = made.upstream.requests.length
  for (const [body, type] of [
    ['{"company":"t-7","a":1}', JSON_TYPE],
    ['<a><company>t-7</company></a>', XML_TYPE],
    ['company=t-7&a=1', FORM_TYPE],
  ] as const) {
    const bytes = requestBytes({
      method: 'POST',
      target: '/api/1.0/b/ACME/fund-data/requiring',
      headers: { ...bearer(access_token), 'Content-Type': type },
      body,
    })
    for (let end = bytes.length - body.length; end < bytes.length; end++)
      await new Promise<void>((resolve) => {
        const socket = connect(made.gateway.port, '127.0.0.1')
        socket.on('error', () => undefined).on('close', () => resolve())
        socket.resume().end(bytes.subarray(0, end))
      })
  }
  expect(made.upstream.requests.slice(before)).toEqual([])
})
