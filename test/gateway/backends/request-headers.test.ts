import { describe, expect, it } from 'vitest'
import { headersOf } from '../../../src/base/http/head/header-text.ts'
import { compileRequestHeaders } from '../../../src/gateway/backends/forward/request.ts'
import { forwardedLines } from '../../../src/base/http/head/addresses.ts'
import { makeCall } from '../../support/calls.ts'

const headers = compileRequestHeaders({
  vendor: 'postern',
  format: 'json',
  payload: 'bare',
  types: undefined,
  forwarded: 'on',
  forwardAuthorization: false,
  credentials: undefined,
  headers: new Map(),
})

describe('the headers of an upstream request', () => {
  it('C8.2 forwarding headers are those of each call, whoever called before, and however many', () => {
    const clients = Array.from({ length: 2500 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
    for (const clientAddress of [...clients, ...clients.slice(0, 50), '2001:db8::5'])
      for (const scheme of ['http', 'https'] as const)
        for (const host of ['a.test', 'b.test:8443']) {
          const lines = forwardedLines({ clientAddress, scheme, host })
          const expected = Object.fromEntries(
            [0, 2, 4, 6].map((at) => [lines[at] ?? '', lines[at + 1] ?? '']),
          )
          expect(headersOf(headers(makeCall({ clientAddress, scheme, host })))).toMatchObject(expected)
        }
  })

  it('C8.2 Accept and version are those of each call, in whatever order versions come', () => {
    const facts = {
      area: 'a',
      action: 'b',
      level: 'business',
      safe: true,
      produces: undefined,
    } as const
    for (const version of [1, 2, 1, 20261121, 2])
      for (const versioned of [true, false]) {
        const accept = versioned ? `application/vnd.postern.action.v${version}+json` : 'application/json'
        expect(headersOf(headers(makeCall({ action: { ...facts, versioned }, version })))).toMatchObject({
          accept,
          'x-postern-action-version': String(version),
        })
      }
  })
})
