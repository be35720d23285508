import { describe, expect, it } from 'vitest'
import { readyDocument } from '../../../src/http/ready-document.ts'
import { expectDocumented } from '../../support/documented.ts'

const paths = {
  '/api/1.0/b/{businessCode}/a/list': {
    get: { responses: { 200: {}, 404: {} } },
    post: { responses: { '2XX': {} } },
  },
}
const worker = { document: readyDocument(Buffer.from(JSON.stringify({ paths })), {}) }
const target = '/api/1.0/b/ACME/a/list?page=2'

describe('C11.3.3 what every contract test proves of the description', () => {
  it.each([
    ['GET', target, 200],
    ['HEAD', target, 404],
    ['POST', target, 201],
    ['DELETE', target, 404],
    ['GET', '/api/1.0/b/ACME/a/other', 418],
    ['OPTIONS', target, 204],
  ])('C11.3.3 lets pass what it has: %s %s %i', (method, path, status) => {
    expect(() => expectDocumented({ worker }, { method, target: path }, { status })).not.toThrow()
  })

  it.each([
    ['GET', 500],
    ['POST', 404],
    ['DELETE', 501],
  ])('C11.3.3 stops at a status that it does not have: %s %i', (method, status) => {
    expect(() => expectDocumented({ worker }, { method, target }, { status })).toThrow('does not have')
  })
})
