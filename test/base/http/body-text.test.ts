import { describe, expect, it } from 'vitest'
import { printable, quoted } from '../../../src/base/http/body/read-body.ts'

describe('names told back to the client', () => {
  it.each([
    ['PersonalDetails', 'PersonalDetails'],
    ['Größe 名前 e\u0301', 'Größe 名前 e\u0301'],
    ['a\r\nb\u0000\u001b[31m', 'a??b??[31m'],
    ['\u2028\u202e\u200b\ufeff\uffff\ud800', '??????'],
    ['a'.repeat(60), 'a'.repeat(60)],
    ['a'.repeat(61), `${'a'.repeat(59)}…`],
    ['😀'.repeat(100_000), `${'😀'.repeat(59)}…`],
  ])('C2.6 %j is safe to say', (name, said) => {
    expect(printable(name)).toBe(said)
    expect(quoted(name)).toBe(`"${said}"`)
  })
})
