import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { wrapJson, wrapJsonStream } from '../../../src/gateway/wrap-json.ts'

const CASES = [
  ['an object is Data', ' {"a": 1.0}', '{"Errors":[],"Data": {"a": 1.0}}'],
  ['an array is Items', '[1,2]', '{"Errors":[],"Data":{"Items":[1,2]}}'],
  ['a scalar is Value', '"x"', '{"Errors":[],"Data":{"Value":"x"}}'],
  ['a byte order mark is left out', '\ufeff{}', '{"Errors":[],"Data":{}}'],
] as const

describe('a bare JSON payload', () => {
  it.each(CASES)('C8.6: %s', (_title, payload, envelope) => {
    expect(wrapJson(Buffer.from(payload)).toString()).toBe(envelope)
  })

  it.each(CASES)('C8.6: as a stream, %s', async (_title, payload, envelope) => {
    expect((await buffer(Readable.from([Buffer.from(payload)]).pipe(wrapJsonStream()))).toString()).toBe(
      envelope,
    )
  })

  it.each([
    ['what is not ASCII', Buffer.from('{"a":"\u00e9\u{1f600}"}')],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xe9, 0xff, 0x22])],
  ])('C8.6: %s keeps its bytes', (_title, payload) => {
    const envelope = wrapJson(payload)
    expect(Buffer.isBuffer(envelope) && envelope.includes(payload)).toBe(true)
  })

  it('C8.6: null is empty Data', () => {
    expect(wrapJson(Buffer.from('null')).toString()).toBe('{"Errors":[],"Data":{}}')
  })

  it('C8.4: JSON that does not parse is trouble with the upstream, not an answer', () => {
    expect(() => wrapJson(Buffer.from('{"a":'))).toThrow(expect.objectContaining({ code: 'upstream_broken' }))
  })
})
