import { describe, expect, it } from 'vitest'
import { checkJson, JsonCheck, NotJson } from '../../../src/base/http/body/json-check.ts'
import { sized } from '../../support/long.ts'
import { engineAccepts, faultInPieces, faultOf, fuzzJson } from '../../support/json-fuzz.ts'
import { ACCEPTED, EITHER, REFUSED } from '../../support/json-test-suite.ts'

const CASES = sized(5_000, 20_000)
const SEED = 20_261_126
/** Of the check: longer documents are read in several pieces of it. */
const PIECE = 48 * 1024

const bytesOf = (text: string): Buffer => Buffer.from(text)
const onceWithin = (length: number): number[][] => Array.from({ length }, (_, at) => [at])
const afterEach = (length: number): number[] => Array.from({ length }, (_, at) => at)

/** What the check says of bytes, which must be the same however short ones are cut. */
function saysOf(bytes: Buffer, envelope = false): string | undefined {
  const fault = faultOf(bytes, envelope)
  const ways = bytes.length < 300 ? [...onceWithin(bytes.length), afterEach(bytes.length)] : [[1, 1000, 1001]]
  for (const cuts of ways) expect(faultInPieces(bytes, cuts, envelope)).toBe(fault)
  return fault
}

describe('C8.4 the check of JSON', () => {
  it('says of JSONTestSuite what JSON.parse says, cut anywhere, but for depth', () => {
    for (const text of [...ACCEPTED, ...REFUSED, ...EITHER]) {
      const bytes = Buffer.from(text, 'latin1')
      expect([text.slice(0, 200), saysOf(bytes) === undefined]).toEqual([
        text.slice(0, 200),
        engineAccepts(bytes, false),
      ])
    }
    for (const text of ACCEPTED) expect(engineAccepts(Buffer.from(text, 'latin1'), false)).toBe(true)
    for (const text of REFUSED) expect(engineAccepts(Buffer.from(text, 'latin1'), false)).toBe(false)
  })

  it(`says of ${CASES} generated and damaged documents what JSON.parse and isEnvelope say, cut anywhere`, () => {
    const defects = [...fuzzJson(CASES, SEED)].filter(({ kind }) => !kind.startsWith('both'))
    expect(defects).toEqual([])
  })

  it('says of every single byte, and of every one in a string and after a number, what JSON.parse says', () => {
    for (let byte = 0; byte < 256; byte++)
      for (const [before, after] of [
        ['', ''],
        ['"', '"'],
        ['"\\', '"'],
        ['"\\u00', '0"'],
        ['1', ''],
        ['[1', '2]'],
        ['{', '}'],
        ['tru', ''],
      ] as const) {
        const bytes = Buffer.concat([bytesOf(before), Buffer.of(byte), bytesOf(after)])
        expect([bytes, saysOf(bytes) === undefined]).toEqual([bytes, engineAccepts(bytes, false)])
      }
  })

  it('says of every sequence of two and three bytes in a string what isUtf8 says', () => {
    const edges = [0x00, 0x22, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xff]
    const wrong: Buffer[] = []
    for (let first = 0x80; first < 256; first++)
      for (const second of edges)
        for (const rest of [[], ...edges.map((third) => [third]), [0x80, 0x80], [0xbf, 0xbf]]) {
          const bytes = Buffer.from([0x22, first, second, ...rest, 0x22])
          const fault = faultOf(bytes, false)
          const isRight = (fault === undefined) === engineAccepts(bytes, false)
          const inPieces = faultInPieces(bytes, afterEach(bytes.length), false)
          if (!isRight || inPieces !== fault) wrong.push(bytes)
        }
    expect(wrong).toEqual([])
  })

  it.each([
    ['[1,}', 'it is no JSON at byte 3'],
    ['', 'it ends at byte 0'],
    [' [1', 'it ends at byte 3'],
    ['"\\u00', 'it ends at byte 5'],
    ['{} {}', 'it is no JSON at byte 3'],
    ['"aé\u0001"', 'it is no JSON at byte 4'],
    ['\u{feff}1', 'it is no JSON at byte 0'],
  ])('tells of %j where it is wrong', (text, message) => expect(saysOf(bytesOf(text))).toBe(message))

  it.each([
    [[0x22, 0xe0, 0x80, 0x80, 0x22], 2],
    [[0x22, 0xc3, 0x22], 2],
    [[0x22, 0xc3, 0xa9, 0xff, 0x22, 0x7d], 3],
    [[0x22, 0xf4, 0x90, 0x80, 0x80, 0x22], 2],
    [[0x22, 0xed, 0xa0, 0x80, 0x22], 2],
  ])('tells of %j that it is no UTF-8 at byte %i', (bytes, at) =>
    expect(saysOf(Buffer.from(bytes))).toBe(`it is no JSON at byte ${at}`),
  )

  it('reads long strings, numbers and blanks that end in any of its own pieces', () => {
    for (const [before, unit, after] of [
      ['"', 'x', '"'],
      ['"', 'é', '"'],
      ['"', '😀', '"'],
      ['"', '\\u00e9', '"'],
      ['', '9', ''],
      ['', ' ', 'true'],
      ['[', '[],', '{}]'],
    ] as const)
      for (let more = 0; more < 8; more++) {
        const padding = ' '.repeat(more)
        const times = Math.ceil((2 * PIECE) / bytesOf(unit).length)
        const bytes = bytesOf(padding + before + unit.repeat(times) + after)
        expect(faultOf(bytes, false)).toBeUndefined()
        expect(faultInPieces(bytes, [PIECE - 1, PIECE + 1], false)).toBeUndefined()
        expect(faultOf(bytes.subarray(0, -1), false)).toBe(
          unit === '9' ? undefined : `it ends at byte ${bytes.length - 1}`,
        )
      }
  })

  it('bounds the depth at 10,000, and says so', () => {
    const nested = (depth: number) => bytesOf('['.repeat(depth) + ']'.repeat(depth))
    const objects = (depth: number) => bytesOf('{"a":'.repeat(depth) + '1' + '}'.repeat(depth))
    expect(saysOf(nested(10_000))).toBeUndefined()
    expect(saysOf(objects(10_000))).toBeUndefined()
    const why = 'it is nested more than 10000 levels deep at byte'
    expect(saysOf(nested(10_001))).toBe(`${why} 10000`)
    expect(saysOf(objects(10_001))).toBe(`${why} 50000`)
  })

  it('keeps documents apart whose pieces come in turn, and those that are given up', () => {
    const texts = ['{"a":["x\\u00e9",[1.5e3', '[[[["é', '{"Errors":[{"Code":"a","Mess'] as const
    const rests = [',true]]}', '"]]]]', 'age":"b"}],"Data":{}}'] as const
    const checks = texts.map((_, at) => new JsonCheck(at === 2))
    const given = new JsonCheck(true)
    for (let at = 0; at < 40; at++) {
      given.write(bytesOf('{"Errors":'.charAt(at)))
      checkJson(bytesOf('{"Errors":[],"Data":{}}'), true)
      for (const [index, check] of checks.entries())
        check.write(bytesOf(texts[index] ?? '').subarray(at, at + 1))
    }
    for (const [index, check] of checks.entries()) {
      expect(() => check.end()).toThrow(NotJson)
      check.write(bytesOf(rests[index] ?? ''))
      check.end()
    }
  })

  it('reads bytes within a larger buffer, and nothing behind them', () => {
    const whole = bytesOf('xx[1,2]3]yy')
    expect(faultOf(whole.subarray(2, 7), false)).toBeUndefined()
    expect(faultOf(whole.subarray(2, 6), false)).toBe('it ends at byte 4')
    checkJson(bytesOf('[1,2,3,4,5,6]'))
    expect(faultOf(bytesOf('[1,2,3'), false)).toBe('it ends at byte 6')
  })
})

describe('C2.1 the check of an envelope', () => {
  const entry = '{"Code":"a","Message":"b"}'
  const notShaped = 'it is no envelope: its Errors is no list of errors, or its Data no object'
  it.each([
    ['{"Errors":[],"Data":{}}', undefined],
    [` {"More":1,"Data":{"Errors":5,"Data":[]},"Errors":[${entry},${entry}]} `, undefined],
    ['{"Err\\u006Frs":[],"\\u0044ata":{}}', undefined],
    ['{"Errors":5,"Errors":[],"Data":[],"D\\u0061ta":{}}', undefined],
    ['{"Errors":[{"Code":5,"Code":"a","Message":"b","x":[{"Code":1}]}],"Data":{}}', undefined],
    ['{"Errors":[{"C\\u006fde":"a","M\\u0065ssage":"\\ud800"}],"Data":{}}', undefined],
    ['{"Errors":[5],"Errors":[],"Data":{}}', undefined],
    ['{"Errors":[],"Data":{}', 'it ends at byte 22'],
    ['{"Errors":[]}', notShaped],
    ['{"Data":{}}', notShaped],
    ['{"Errors":[5],"Data":{}}', notShaped],
    [`{"Errors":[${entry},5],"Data":{}}`, notShaped],
    [`{"Errors":[${entry},[]],"Data":{}}`, notShaped],
    ['{"Errors":[{}],"Data":{}}', notShaped],
    ['{"Errors":[{"Code":"a"}],"Data":{}}', notShaped],
    ['{"Errors":[{"Code":"a","Message":"b","Message":null}],"Data":{}}', notShaped],
    ['{"Errors":[{"Code":"a","message":"b"}],"Data":{}}', notShaped],
    ['{"Errors":[{"Code":"a","Messages":"b"}],"Data":{}}', notShaped],
    [`{"Errors":[{"Code":"a"},${entry}],"Data":{}}`, notShaped],
    ['{"Errors":{},"Data":{}}', notShaped],
    ['{"Errors":[],"Data":{},"Data":1}', notShaped],
    ['{"Errors":[],"Data":{},"Errors":null}', notShaped],
    ['{"\\u0000Errors":[],"Data":{}}', notShaped],
    ['{"Errors\\n":[],"Data":{}}', notShaped],
    ['[{"Errors":[],"Data":{}}]', 'it is no envelope at byte 0'],
    ['"Errors"', 'it is no envelope at byte 0'],
    [' null', 'it is no envelope at byte 1'],
    ['<html></html>', 'it is no envelope at byte 0'],
    ['', 'it ends at byte 0'],
  ])('%s: %s', (text, message) => {
    expect(saysOf(bytesOf(text), true)).toBe(message)
    expect(engineAccepts(bytesOf(text), true)).toBe(message === undefined)
  })
})
