import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { identityDoor } from '../../../src/identity/identity.ts'
import { FORM_LIMIT } from '../../../src/identity/steps/read-form.ts'
import {
  requestToken,
  basic,
  exchangeOf,
  formOf,
  openTestIdentity,
  outside,
} from '../../support/identity-under-test.ts'

const PARAMS = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
const FORM = 'application/x-www-form-urlencoded'

const post = (contentType: string | undefined, body: string, more: Record<string, string> = {}) =>
  openTestIdentity().send({
    headers: {
      ...(contentType !== undefined && { 'content-type': contentType }),
      authorization: basic('acme-books'),
      ...more,
    },
    body,
  })

describe('C6.1.1 the form', () => {
  it.each([FORM, `${FORM};charset=utf-8`, `${FORM}; charset="UTF-8"`, 'Application/X-WWW-Form-Urlencoded'])(
    'C6.1.1 %s is read',
    async (contentType) => {
      expect((await post(contentType, formOf(PARAMS))).status).toBe(200)
    },
  )

  it.each([undefined, 'application/json', `${FORM}; charset=latin1`, 'text/plain', `${FORM}, ${FORM}`])(
    'C6.1.1 %s is invalid_request',
    async (contentType) => {
      const { status, json } = await post(contentType, formOf(PARAMS))
      expect([status, json.error]).toEqual([400, 'invalid_request'])
    },
  )

  it('C6.1.1 a compressed form is invalid_request', async () => {
    expect((await post(FORM, formOf(PARAMS), { 'content-encoding': 'gzip' })).json.error).toBe(
      'invalid_request',
    )
  })

  it('C6.1.1 a trailing slash on the path is accepted', async () => {
    const headers = { 'content-type': FORM, authorization: basic('acme-books') }
    expect(
      (await openTestIdentity().send({ path: '/connect/token/', headers, body: formOf(PARAMS) })).status,
    ).toBe(200)
  })

  it('C6.1.1 raw spaces are tolerated, and scope is split on runs of spaces', async () => {
    const { json } = await post(
      FORM,
      'grant_type=password&username=alice&password=alice-password&scope=openid   profile+++email  ',
    )
    expect(json.scope).toBe('openid profile email')
  })

  it('C6.1.1 a body over the limit is invalid_request, unread beyond it', async () => {
    const big = Buffer.alloc(1024, 'a')
    let pulled = 0
    const body = new Readable({
      read() {
        pulled += 1
        this.push(pulled > 10_000 ? null : big)
      },
    })
    const service = openTestIdentity()
    const exchange = exchangeOf({
      headers: { 'content-type': FORM, 'transfer-encoding': 'chunked', authorization: basic('acme-books') },
    })
    const answer = await identityDoor(() => service.identity, outside)({ ...exchange, body })
    expect([answer.status, JSON.parse(answer.body as string).error]).toEqual([400, 'invalid_request'])
    // Up to the limit, and what a stream holds in advance.
    expect(pulled).toBeLessThan(3 * (FORM_LIMIT / 1024))
  })

  it('C6.1.1 a declared length over the limit is refused without reading', async () => {
    const { json } = await post(FORM, 'a', { 'content-length': String(FORM_LIMIT + 1) })
    expect(json.error).toBe('invalid_request')
  })
})

describe('C6.0 parameters', () => {
  it('C6.0 one without a value counts as absent', async () => {
    expect((await requestToken(openTestIdentity(), { username: '' })).json.error).toBe('invalid_request')
  })

  it('C6.0 unknown ones are ignored', async () => {
    expect((await requestToken(openTestIdentity(), { colour: 'blue', __proto__: 'x' })).status).toBe(200)
  })

  it('C6.0 a repeated one is invalid_request, which names it', async () => {
    const { json } = await post(FORM, `${formOf(PARAMS)}&username=alice`)
    expect(json.error).toBe('invalid_request')
    expect(json.error_description).toContain('username')
  })

  it('C6.0 an empty repeat repeats nothing', async () => {
    expect((await post(FORM, `${formOf(PARAMS)}&username=`)).status).toBe(200)
  })
})
