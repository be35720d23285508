import { describe, expect, it } from 'vitest'
import { readyDocument } from '../../../src/base/http/head/entity-tag.ts'
import { expectDocumented } from '../../support/documented.ts'

const schema = {}
const told = { headers: { Allow: {} }, content: { 'application/json': { schema }, 'image/*': { schema } } }
const paths = {
  '/api/1.0/b/{businessCode}/a/list': {
    get: { responses: { 200: told, 404: told } },
    post: { responses: { '2XX': told } },
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

  it.each([
    [{ 'content-type': 'application/json; charset=utf-8', allow: 'GET' }, undefined],
    [{ 'content-type': 'image/png', 'x-other': 'any' }, undefined],
    [{ 'content-type': 'text/html' }, 'with a body of text/html'],
    [{ 'retry-after': '7' }, 'with the header retry-after'],
  ])('C11.3.3 judges the type and the headers, where they are known: %j', (headers, problem) => {
    const judge = () => expectDocumented({ worker }, { target }, { status: 200, headers })
    if (problem === undefined) expect(judge).not.toThrow()
    else expect(judge).toThrow(problem)
  })
})
