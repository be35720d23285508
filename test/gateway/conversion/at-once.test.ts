import { describe, expect, it } from 'vitest'
import { type AnswerTask, convertAnswer, convertAtOnce } from '../../../src/gateway/conversion/answers.ts'
import { AT_ONCE } from '../../../src/gateway/conversion/at-once.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

const NO_NAMES = {}

const answer = (json: string, items: AnswerTask['items'] = NO_NAMES): AnswerTask => ({
  kind: 'answer',
  bytes: Buffer.from(json),
  answerFormat: { format: 'json', payload: 'bare' },
  to: 'xml',
  items,
  limit: 16 * 1024 ** 2,
})
const list = (item: string, bytes: number): string =>
  `[${`${item},`.repeat(Math.floor(bytes / (item.length + 1)) - 2)}${item}]`
const keys = (count: number, key: (at: number) => string): string =>
  `{${Array.from({ length: count }, (_, at) => `${JSON.stringify(key(at))}:1`).join()}}`

/** Told in no time, also of megabytes. */
const isSame = (one: Uint8Array | undefined, other: Uint8Array): boolean =>
  one !== undefined && Buffer.compare(one, other) === 0

describe('an answer that is written as XML', () => {
  it.each([
    ['numbers', list('0', AT_ONCE.writing)],
    ['a text', JSON.stringify('x'.repeat(AT_ONCE.writing - 2))],
    ['an object with 3,900 keys', keys(3900, (at) => `key${at}`)],
  ])('T4.7 is written at once up to 256 KiB: %s', (_, json) => {
    const task = answer(json)
    expect(isSame(convertAtOnce(task), convertAnswer(task))).toBe(true)
  })

  it.each([
    ['a byte more than 256 KiB', JSON.stringify('x'.repeat(AT_ONCE.writing - 1)), NO_NAMES],
    ['an object with 5,000 keys', keys(5000, (at) => `key${at}`), {}],
    [
      '5,000 keys in as many objects',
      `[${Array.from({ length: 5000 }, (_, at) => `{"k${at}":1}`).join()}]`,
      {},
    ],
    ['500 keys that are escaped', keys(500, (at) => `${' '.repeat(100)}${at}`), {}],
    ['one long key that is escaped', keys(1, () => ' '.repeat(100_000)), {}],
    ['long names of items', list('0', AT_ONCE.writing), { Items: 'Item'.repeat(100) }],
  ])('T4.7 is left to a thread: %s', (_, json, items) => {
    const task = answer(json, items)
    expect(convertAtOnce(task)).toBeUndefined()
    expect(convertAnswer(task).length).toBeGreaterThan(json.length)
  })

  it('T4.7 is left to a thread where its fault needs a second look at more than 64 KiB', () => {
    const broken = (bytes: number): AnswerTask => answer(list('0', bytes).slice(0, -1))
    expect(() => convertAtOnce(broken(AT_ONCE.json))).toThrow(Fault)
    expect(convertAtOnce(broken(AT_ONCE.json + 100))).toBeUndefined()
    expect(() => convertAnswer(broken(AT_ONCE.json + 100))).toThrow(Fault)
  })

  it('T4.7 is not left to a thread for good because others of its action had other keys', () => {
    const items = { Funds: 'Fund' }
    const others = Array.from('abcdefgh', (key) => `{"${key}":1}`).join()
    convertAtOnce(answer(`[${others}]`, items))
    const records = answer(list('{"Code":"SUPER1","Name":"Super","Members":42}', AT_ONCE.writing), items)
    const tries = Array.from({ length: 30 }, () => convertAtOnce(records))
    expect(isSame(tries.at(-1), convertAnswer(records))).toBe(true)
  })
})
