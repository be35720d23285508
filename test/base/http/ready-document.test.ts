import { describe, expect, it } from 'vitest'
import { answerReady, readyDocument } from '../../../src/base/http/head/entity-tag.ts'

const made = readyDocument(Buffer.from('{}'), {
  'Content-Type': 'application/json',
  'Cache-Control': 'public, max-age=60',
})
const statusFor = (tags: string | undefined): number =>
  answerReady(made, { headers: tags === undefined ? {} : { 'if-none-match': tags } }).status

describe('a document that is made once', () => {
  it('has a tag that its bytes alone decide', () => {
    expect(made.tag).toMatch(/^"[\w-]{22}"$/)
    expect(readyDocument(Buffer.from('{}'), {}).tag).toBe(made.tag)
    expect(readyDocument(Buffer.from('{ }'), {}).tag).not.toBe(made.tag)
  })

  it('is answered whole, with its tag, to whoever has no version or another one', () => {
    for (const tags of [
      undefined,
      '',
      '"other"',
      'W/"other", "another"',
      made.tag.slice(1, -1),
      `${made.tag}x`,
    ])
      expect([tags, statusFor(tags)]).toEqual([tags, 200])
    expect(answerReady(made, { headers: {} })).toEqual({
      status: 200,
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'public, max-age=60', ETag: made.tag },
      body: Buffer.from('{}'),
    })
  })

  it('is 304 without a body to whoever names its tag, weak or strong, alone or in a list, or any tag', () => {
    for (const tags of [made.tag, `W/${made.tag}`, `"a", ${made.tag}`, `"a",W/${made.tag} ,"b"`, '*'])
      expect([tags, statusFor(tags)]).toEqual([tags, 304])
    expect(answerReady(made, { headers: { 'if-none-match': '*' } })).toEqual({
      status: 304,
      headers: { 'Cache-Control': 'public, max-age=60', ETag: made.tag },
      body: undefined,
    })
  })
})
