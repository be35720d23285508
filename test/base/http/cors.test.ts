import { describe, expect, it } from 'vitest'
import { Cors, isOrigin } from '../../../src/base/http/head/cors.ts'
import type { Head } from '../../../src/base/http/head/head.ts'

const APP = 'https://app.example.com'
const cors = new Cors({ origins: [APP], methods: ['GET'], headers: [], exposeHeaders: [], maxAge: 1500 })
const head = (headers: Head['headers']): Head => ({
  method: 'GET',
  rawTarget: '/',
  httpVersion: '1.1',
  rawHeaders: [],
  headers,
  remoteAddress: '',
})

describe('C4.18 cross-origin calls', () => {
  it.each([
    `${APP}/`,
    'https://App.example.com',
    'https://app.example.com:443',
    'app.example.com',
    '*',
    'null',
  ])('takes %s for no origin, since no browser writes one so', (text) => expect(isOrigin(text)).toBe(false))

  it('takes origins as browsers write them', () => {
    expect(['http://localhost:5173', APP, 'http://[::1]:80'].map(isOrigin)).toEqual([true, true, false])
  })

  it('C4.18 lets a page send a proof wherever it may send anything, once in the list', () => {
    const allowed = (headers: readonly string[]) =>
      new Cors({ origins: [APP], methods: ['GET'], headers, exposeHeaders: [], maxAge: 0 }).preflight(
        head({ origin: APP }),
      )['Access-Control-Allow-Headers']
    expect([allowed([]), allowed(['dpop', 'Accept'])]).toEqual(['DPoP', 'Accept, DPoP'])
  })

  it('does not let an upstream’s word on origins stand beside its own', () => {
    const told = { 'access-control-allow-origin': '*', vary: 'Accept-Language', Vary: 'Accept', ETag: '"1"' }
    expect(cors.onAnswer(head({}), told)).toEqual({ ETag: '"1"', Vary: 'Accept-Language, Accept, Origin' })
    expect(cors.onAnswer(head({ origin: APP }), told)).toMatchObject({ 'Access-Control-Allow-Origin': APP })
  })
})
