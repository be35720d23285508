import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isOpaque } from '../../../src/keys/token-verifier.ts'
import { foreignToken, makeIssuerKey } from '../../support/foreign-issuer.ts'

const token = await foreignToken(await makeIssuerKey('a'))
const [header = '', payload = '', signature = ''] = token.split('.')
const encode = (text: string): string => Buffer.from(text).toString('base64url')

describe('C11.2 whether a token is opaque', () => {
  it.each([
    ['a signed token', token],
    ['one without its signature', `${header}.${payload}.`],
    ['one that was cut', `${header}.${payload}`],
    ['its header alone', header],
    ['one with a part more', `${token}.${signature}`],
    ['one with many parts more', `${token}${'.a'.repeat(20)}`],
    ['an encrypted one', `${encode('{"alg":"dir","enc":"A256GCM"}')}..iv.text.tag`],
    ['one with padding', `${header}=.${payload}.${signature}`],
    ['one with characters between that decoders skip', `~${header.slice(0, 5)}~${header.slice(5)}.a.b`],
    ['one whose header begins with white space', `${encode(' \n\t{"alg":"none"}')}.${payload}.`],
    ['one with a broken header', `${encode('{"alg":')}.${payload}`],
    ['any three parts of base64url', 'abc.def.ghi'],
    ['any five parts of base64url', 'abc.def..ghi.jkl'],
    ['two dots', '..'],
    ['nested base64url of a token', `${encode('{')}${encode(token)}`],
  ])('T3.1 %s is not: it is judged by its signature, and never leaves', (_, text) => {
    expect(isOpaque(text)).toBe(false)
  })

  it.each([
    'Zk3xUbP1yqLmTr0cH2dVwQ',
    'ory_at_Xe1.Zk3xUbP1',
    'v2.public.a.b',
    'ya29.a0AfH6SMBx-_~+/==',
    'a.b.c~d',
    'a',
    '.',
    'a.b.c.d.e.f.g.h',
  ])('C11.2 %j is', (text) => {
    expect(isOpaque(text)).toBe(true)
  })

  it('T3.1 whatever is put behind or into the header of a token, the result is not', () => {
    const junk = fc.string({
      unit: fc.constantFrom('~', '+', '/', '.', '=', '-', '_', 'a', 'Z', '0'),
      maxLength: 12,
    })
    fc.assert(
      fc.property(junk, (more) => !isOpaque(`${header}.${more}`) && !isOpaque(`${header}${more}.a.b`)),
    )
    const skipped = fc.array(fc.constantFrom('~', '~~'), { maxLength: 6 })
    fc.assert(fc.property(skipped, (more) => !isOpaque(`${more.join('')}${header}.${payload}.${signature}`)))
  })
})
