import { describe, expect, it } from 'vitest'
import {
  checkContentType,
  checkOwnContentType,
  MEDIA_TYPE_OF,
  parseContentType,
} from '../../../src/base/http/head/media-type.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

function outcome(work: () => string): string {
  try {
    return work()
  } catch (error) {
    if (error instanceof Fault) return error.code
    throw error
  }
}
const REFUSED = 'unsupported_media_type'
const judged = (contentType: string | undefined, hasBody = true, contentEncoding?: string): string =>
  outcome(() => checkContentType({ contentType, contentEncoding, hasBody }))
const judgedOwn = (contentType: string | undefined, consumes: string[], hasBody = true): string =>
  outcome(() => checkOwnContentType({ contentType, contentEncoding: 'gzip', hasBody }, consumes))

/** T4.1: one meaning each. */
const FORMS: [string, string][] = [
  ['application/json', 'json'],
  ['application/xml', 'xml'],
  ['application/x-www-form-urlencoded', 'form'],
  ['Application/JSON', 'json'],
  [' application/json', 'json'],
  ['\tapplication/json\t', 'json'],
  ['application/json;', 'json'],
  ['application/json ; ', 'json'],
  ['application/json;;', 'json'],
  ['application/json\t;charset=utf-8', 'json'],
  ['application/json; charset=UTF-8', 'json'],
  ['application/json;charset="utf-8"', 'json'],
  ['application/json;charset="\\utf-8"', 'json'],
  ['application/json;CHARSET=Utf-8', 'json'],
  ['application/json;version=1', 'json'],
  ['application/json;x="application/xml"', 'json'],
  ['application/json;x=";charset=utf-16"', 'json'],
  ['application/json;charset=utf-16', REFUSED],
  ['application/json;charset=iso-8859-1', REFUSED],
  ['application/json;charset=""', REFUSED],
  ['application/json;charset=', REFUSED],
  ['application/json;charset = utf-8', REFUSED],
  ["application/json;charset='utf-8'", REFUSED],
  ['application/json;charset=utf-8;charset=utf-8', REFUSED],
  ['application/json;charset=utf-8;charset=utf-16', REFUSED],
  ['application/json;x=1;X=2', REFUSED],
  ['application/json, application/xml', REFUSED],
  ['application/json,application/json', REFUSED],
  ['application/json application/xml', REFUSED],
  ['application/json charset=utf-8', REFUSED],
  ['application /json', REFUSED],
  ['application/ json', REFUSED],
  ['application/json;x="open', REFUSED],
  ['application/json\u000b', REFUSED],
  ['application/json\u00a0', REFUSED],
  ['application/json\u0000', REFUSED],
  ['application/json+', REFUSED],
  ['application/jsonp', REFUSED],
  ['application/vnd.postern.action.v1+json', REFUSED],
  ['text/json', REFUSED],
  ['text/xml', REFUSED],
  ['multipart/form-data; boundary=x', REFUSED],
  ['*/*', REFUSED],
  ['application/*', REFUSED],
  ['json', REFUSED],
  [';', REFUSED],
  ['', REFUSED],
]

describe('the type of a request body', () => {
  it.each(FORMS)('C7.4 T4.1 %j is %s', (value, expected) => expect(judged(value)).toBe(expected))

  it.each(FORMS)('C7.4 %j is judged (%s) without a body too', (value, expected) =>
    expect(judged(value, false)).toBe(expected === REFUSED ? REFUSED : 'none'),
  )

  it('C7.4 takes a body without Content-Type for XML, and no body for none', () => {
    expect(judged(undefined)).toBe('xml')
    expect(judged(undefined, false)).toBe('none')
  })

  it('C7.4 refuses a kind that the caller does not take', () => {
    const facts = { contentEncoding: undefined, hasBody: true }
    expect(checkContentType({ ...facts, contentType: MEDIA_TYPE_OF.form }, ['form'])).toBe('form')
    expect(() => checkContentType({ ...facts, contentType: MEDIA_TYPE_OF.json }, ['form'])).toThrow(Fault)
    expect(() => checkContentType({ ...facts, contentType: undefined }, ['form'])).toThrow(Fault)
    expect(checkContentType({ ...facts, contentType: undefined, hasBody: false }, ['form'])).toBe('none')
  })

  it.each(['gzip', 'br', 'identity, gzip', 'gzip,identity', 'x', 'identity;q=1', '"identity"'])(
    'C7.4 refuses Content-Encoding %j, with or without a body',
    (coding) => {
      expect(judged('application/json', true, coding)).toBe(REFUSED)
      expect(judged(undefined, false, coding)).toBe(REFUSED)
    },
  )

  it.each(['identity', ' Identity ', 'identity, identity', ''])('C7.4 takes Content-Encoding %j', (coding) =>
    expect(judged('application/json', true, coding)).toBe('json'),
  )

  it('parses a Content-Type into its type and parameters', () => {
    expect(parseContentType('Multipart/Form-Data; Boundary="a b"')).toEqual({
      type: 'multipart/form-data',
      parameters: [{ name: 'boundary', value: 'a b', quoted: true }],
    })
  })
})

describe('the type of a body for an action with consumes of its own', () => {
  it.each<[string | undefined, string[], string]>([
    ['image/png', ['image/*'], 'image/png'],
    ['IMAGE/PNG;x=y', ['image/png'], 'image/png'],
    ['image/png', ['Image/PNG'], 'image/png'],
    ['text/plain;charset=latin1', ['*/*'], 'text/plain'],
    ['application/json', ['image/*'], REFUSED],
    ['imagex/png', ['image/*'], REFUSED],
    ['image/png, image/gif', ['*/*'], REFUSED],
    ['multipart/form-data;boundary=a;boundary=b', ['*/*'], REFUSED],
    [undefined, ['*/*'], 'application/octet-stream'],
    [undefined, ['image/*'], REFUSED],
  ])('C7.1 %j for %j is %s', (value, consumes, expected) => expect(judgedOwn(value, consumes)).toBe(expected))

  it('C7.1 judges a stated type without a body too', () => {
    expect(judgedOwn('text/plain', ['image/*'], false)).toBe(REFUSED)
    expect(judgedOwn('image/png', ['image/*'], false)).toBe('none')
    expect(judgedOwn(undefined, ['image/*'], false)).toBe('none')
  })
})
