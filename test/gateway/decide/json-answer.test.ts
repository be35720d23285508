import { Passage, readableOf, type Stage, StreamInPieces } from '../../../src/base/http/body/pieces.ts'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { WrappedBytes } from '../../../src/base/contracts/calls/exchange.ts'
import { envelopeStage, wrapJson, wrapStage } from '../../../src/gateway/decide/answer-body.ts'

const CASES = [
  ['an object is Data', '{"a": 1.0}\n', '{"Errors":[],"Data":{"a": 1.0}\n}'],
  ['blanks before it are left out', ' \r\n\t{"a": "é" }', '{"Errors":[],"Data":{"a": "é" }}'],
  ['an array is Items', '[1,2]', '{"Errors":[],"Data":{"Items":[1,2]}}'],
  ['a scalar is Value', '"x"', '{"Errors":[],"Data":{"Value":"x"}}'],
  ['a byte order mark is left out', '\ufeff{}', '{"Errors":[],"Data":{}}'],
] as const

describe('a bare JSON payload', () => {
  it.each(CASES)('C8.6: %s', (_title, payload, envelope) => {
    expect(wrapped(payload)).toBe(envelope)
  })

  it.each(CASES)('C8.6: as a stream, %s', async (_title, payload, envelope) => {
    expect(await streamed(payload, 1000)).toBe(envelope)
  })

  it('C8.6: its bytes are kept, and not copied', () => {
    const payload = Buffer.from('{"a":"\u00e9\u{1f600}"}')
    expect(wrapJson(payload)).toEqual({ before: '{"Errors":[],"Data":', bytes: payload, after: '}' })
    const { bytes } = wrapJson(payload) as WrappedBytes
    expect(bytes.buffer).toBe(payload.buffer)
  })

  it.each([1, 2, 3, 4, 1000])(
    'C7.4: what looks like a byte order mark further on stays, in pieces of %i bytes',
    async (size) => {
      const payload = '{"\ufeff":"\uff01\ufeff"}'
      expect(await streamed(payload, size)).toBe(`{"Errors":[],"Data":${payload}}`)
      expect(await streamed(Buffer.from(`\ufeff${payload}`), size)).toBe(`{"Errors":[],"Data":${payload}}`)
    },
  )

  it.each([
    ['null', 'null'],
    ['null with blanks', ' null\n'],
    ['nothing', ''],
  ])('C8.6: %s is empty Data, in one piece or in many', async (_title, payload) => {
    if (payload !== '') expect(wrapped(payload)).toBe(EMPTY)
    expect(await streamed(payload, 1)).toBe(EMPTY)
  })

  it.each([1, 2, 3, 1000])('C7.4: a byte order mark is left out in pieces of %i bytes', async (size) => {
    expect(await streamed('\ufeff{"a":1}', size)).toBe('{"Errors":[],"Data":{"a":1}}')
  })

  it.each([
    ['half an object', Buffer.from('{"a":')],
    ['HTML', Buffer.from('<html></html>')],
    ['two values', Buffer.from('{} {}')],
    ['blanks alone', Buffer.from(' \n')],
    ['a word that is none', Buffer.from('nul')],
    ['half a byte order mark', Buffer.from([0xef, 0xbb, 0x7b, 0x7d])],
    ['two byte order marks', Buffer.from('\ufeff\ufeff{}')],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xe9, 0xff, 0x22])],
  ])('C8.4: %s is trouble with the upstream, not an answer', async (_title, payload) => {
    const broken = expect.objectContaining({ code: 'upstream_broken' }) as unknown
    expect(() => wrapJson(payload)).toThrow(broken)
    for (const size of [1, 2, 1000]) await expect(streamed(payload, size)).rejects.toEqual(broken)
  })
})

const ENVELOPE = '{"Errors":[],"Data":{"a":"\u00e9"}}'

describe('an envelope that streams through', () => {
  const through = (payload: string, declared: boolean, size: number): Promise<string> =>
    textOf(payload, size, envelopeStage(declared ? Buffer.byteLength(payload) : undefined))

  it('C8.6: whole or in pieces, a payload becomes the same bytes', async () => {
    for (const blanks of ['', ' ', '\n  ', '\ufeff', '\ufeff \t'])
      for (const payload of ['{"a":1}', '[1, 2] ', '"x"', 'null ', '{"a":"é"}']) {
        const whole = wrapped(blanks + payload)
        for (const size of [1, 2, 5, 1000]) expect(await streamed(blanks + payload, size)).toBe(whole)
      }
  })

  it.each([1, 7, 1000])('C8.6: is passed on as it is, in pieces of %i bytes', async (size) => {
    for (const declared of [true, false]) expect(await through(ENVELOPE, declared, size)).toBe(ENVELOPE)
  })

  it('C7.4: has blanks in place of a byte order mark, whether or not its length was told', async () => {
    expect(await through(`\ufeff${ENVELOPE}`, true, 1)).toBe(`   ${ENVELOPE}`)
    expect(await through(`\ufeff${ENVELOPE}`, false, 1)).toBe(`   ${ENVELOPE}`)
  })

  it.each(['{"a":1}', '<html></html>', ENVELOPE.slice(0, -1), `${ENVELOPE}}`, '[]', ''])(
    'C8.4: breaks before its end if it is %s',
    async (payload) => {
      for (const size of [1, 1000]) {
        const sent: Buffer[] = []
        const stream = readable(payload, size, envelopeStage(Buffer.byteLength(payload)))
        stream.on('data', (chunk: Buffer) => sent.push(chunk))
        const thrown: unknown = await new Promise((resolve) => stream.once('error', resolve))
        expect(thrown).toMatchObject({ code: 'upstream_broken' })
        expect(Buffer.concat(sent).length).toBeLessThan(Math.max(1, Buffer.byteLength(payload)))
      }
    },
  )
})

function* pieces(payload: string | Buffer, size: number): Generator<Buffer> {
  const bytes = Buffer.from(payload)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const readable = (payload: string | Buffer, size: number, stage: Stage): Readable =>
  readableOf(new Passage(new StreamInPieces(Readable.from(pieces(payload, size))), stage))

const textOf = async (payload: string | Buffer, size: number, stage: Stage): Promise<string> =>
  (await buffer(readable(payload, size, stage))).toString()

const streamed = (payload: string | Buffer, size: number): Promise<string> =>
  textOf(payload, size, wrapStage())

function wrapped(payload: string): string {
  const body = wrapJson(Buffer.from(payload))
  return typeof body === 'string' ? body : body.before + body.bytes.toString() + body.after
}

const EMPTY = '{"Errors":[],"Data":{}}'
