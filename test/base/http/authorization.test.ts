import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  parseBasic,
  parseBearer,
  parseToken,
  quotedString,
  tokenChallenge,
  usesScheme,
} from '../../../src/base/http/head/authorization.ts'
import type { Head } from '../../../src/base/http/head/head.ts'

const LOOSE = { strictHeaderNames: false, anySchemeCase: false }
const STRICT = { strictHeaderNames: true, anySchemeCase: false }

function headWith(value: string | undefined, name = 'Authorization'): Head {
  return {
    method: 'GET',
    rawTarget: '/',
    httpVersion: '1.1',
    rawHeaders: ['X-Note', 'Authorization', ...(value === undefined ? [] : [name, value])],
    headers: value === undefined ? {} : { authorization: value },
    remoteAddress: '192.0.2.1',
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const bearer = (value: string | undefined) => parseBearer(headWith(value), LOOSE)
const basic = (text: string) => parseBasic(headWith(`Basic ${base64(text)}`), LOOSE)

describe('C4.14 bearer credentials', () => {
  it('are none without a header, or with an empty one', () => {
    expect(bearer(undefined)).toEqual({ kind: 'none' })
    expect(bearer('')).toEqual({ kind: 'none' })
  })

  it('are another scheme unless the word is Bearer, exactly', () => {
    for (const value of [
      'bearer x',
      'BEARER x',
      'Basic eDp5',
      'Bearerx y',
      'Bearer-x',
      'Bear',
      'token',
      '"Bearer x"',
    ])
      expect(bearer(value), value).toEqual({ kind: 'other-scheme' })
  })

  it('are the one token after one or more spaces', () => {
    for (const spaces of [1, 2, 30])
      expect(bearer(`Bearer${' '.repeat(spaces)}a.b-c_d~e+f/g==`)).toEqual({
        kind: 'token',
        token: 'a.b-c_d~e+f/g==',
      })
  })

  it('C4.16 are not gone over again for a token that is known, whole and exactly', () => {
    const asked: string[] = []
    const known = (token: string): boolean => (asked.push(token), token === 'known token')
    expect(parseBearer(headWith('Bearer  known token'), LOOSE, known)).toEqual({
      kind: 'token',
      token: 'known token',
    })
    expect(parseBearer(headWith('Bearer known token '), LOOSE, known)).toEqual({ kind: 'malformed' })
    expect(parseBearer(headWith('bearer known token'), LOOSE, known)).toEqual({ kind: 'other-scheme' })
    expect(asked).toEqual(['known token', 'known token '])
  })

  it('are malformed with nothing, or with anything but one token, after the word', () => {
    const values = [
      '',
      ' ',
      '\tx',
      ' \tx',
      ' a b',
      ' a\tb',
      ' a,b',
      ' a, Bearer b',
      ' =',
      ' a=b',
      ' "a"',
      ' é',
      '=x',
      ',x',
    ]
    for (const rest of values) expect(bearer(`Bearer${rest}`), rest).toEqual({ kind: 'malformed' })
  })

  it('count the name in any case, or only as Authorization where the setting is on', () => {
    const lower = headWith('Bearer x', 'authorization')
    expect(parseBearer(lower, LOOSE)).toEqual({ kind: 'token', token: 'x' })
    expect(parseBearer(lower, STRICT)).toEqual({ kind: 'none' })
    expect(parseBearer(headWith('Bearer x'), STRICT)).toEqual({ kind: 'token', token: 'x' })
    expect(parseBearer(headWith(undefined), STRICT)).toEqual({ kind: 'none' })
    expect(parseBasic(headWith(`Basic ${base64('a:b')}`, 'authorization'), STRICT)).toEqual({ kind: 'none' })
  })
})

describe('C4.14 credentials of the scheme DPoP', () => {
  const dpop = (value: string | undefined) => parseToken(headWith(value), 'DPoP', LOOSE)

  it('C4.14 are the one token after the word in any case, and one or more spaces', () => {
    for (const word of ['DPoP', 'dpop', 'DPOP', 'dPoP'])
      expect(dpop(`${word}  a.b-c_d~e+f/g==`)).toEqual({ kind: 'token', token: 'a.b-c_d~e+f/g==' })
  })

  it('C4.14 are malformed with nothing, or with anything but one token, behind it', () => {
    for (const rest of ['', ' ', ' a b', ' a,b', '\tx', ' "a"'])
      expect(dpop(`DPoP${rest}`), rest).toEqual({ kind: 'malformed' })
  })

  it('C4.14 are no credentials by another word, or under a name that does not count', () => {
    for (const value of ['Bearer x', 'DPoPx y', 'DPo', 'DPoP-x y', 'dp op'])
      expect(dpop(value), value).toEqual({ kind: 'other-scheme' })
    expect(dpop(undefined)).toEqual({ kind: 'none' })
    expect(parseToken(headWith('DPoP x', 'authorization'), 'DPoP', STRICT)).toEqual({ kind: 'none' })
  })

  it('C4.14 are told from others by the word alone', () => {
    const values = ['DPoP x', 'dpop', 'DPoP', 'DPoP a b', 'Bearer x', 'DPoPx y', 'Digest a', 'd', '']
    expect(values.filter((value) => usesScheme(headWith(value), 'DPoP'))).toEqual([
      'DPoP x',
      'dpop',
      'DPoP',
      'DPoP a b',
    ])
    expect(usesScheme(headWith(undefined), 'DPoP')).toBe(false)
  })
})

describe('C6.1.2 basic credentials', () => {
  it('are none or another scheme like bearer credentials, the word in exact case', () => {
    expect(parseBasic(headWith(undefined), LOOSE)).toEqual({ kind: 'none' })
    for (const value of [`basic ${base64('a:b')}`, 'Bearer x', 'Basics x'])
      expect(parseBasic(headWith(value), LOOSE), value).toEqual({ kind: 'other-scheme' })
  })

  it('are the pair as sent, split at the first colon', () => {
    expect(basic('acme-books:acme-books-secret')).toEqual({
      kind: 'pairs',
      pairs: [{ id: 'acme-books', secret: 'acme-books-secret' }],
    })
    expect(basic('a:b:c')).toEqual({ kind: 'pairs', pairs: [{ id: 'a', secret: 'b:c' }] })
    expect(basic(':')).toEqual({ kind: 'pairs', pairs: [{ id: '', secret: '' }] })
    expect(basic('é:\ufeff€')).toEqual({ kind: 'pairs', pairs: [{ id: 'é', secret: '\ufeff€' }] })
  })

  it('are tried form-decoded second, where that is another pair', () => {
    expect(basic('a%2Db:c+d')).toEqual({
      kind: 'pairs',
      pairs: [
        { id: 'a%2Db', secret: 'c+d' },
        { id: 'a-b', secret: 'c d' },
      ],
    })
  })

  it('are only the pair as sent where it is no form encoding, or would hold controls', () => {
    for (const text of ['a:100%', 'a:%zz', 'a%ff:b', 'a%0d%0a:b', 'a:%00'])
      expect(basic(text), text).toMatchObject({ kind: 'pairs', pairs: { length: 1 } })
  })

  it('survive form encoding, whatever they are (RFC 6749 §2.3.1)', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((each) => !/\p{Cc}/u.test(each))
    const encode = (each: string): string => new URLSearchParams({ x: each }).toString().slice(2)
    fc.assert(
      fc.property(text, text, (id, secret) => {
        const credentials = basic(`${encode(id)}:${encode(secret)}`)
        expect(credentials.kind === 'pairs' && credentials.pairs.at(-1)).toEqual({ id, secret })
      }),
    )
  })

  it('are malformed if not strict base64 of UTF-8 text with a colon and without controls', () => {
    const values = [
      ...[
        '',
        ' ',
        'a',
        '====',
        'YTpi=',
        'YTpiY',
        'YTpiYw',
        'YTpi YTpi',
        ' YTpi,',
        'YTp-',
        'YTp_',
        'YR==',
        '\tYTpi',
      ],
      ...[
        base64('nocolon'),
        base64('a:\0'),
        base64('a\n:b'),
        Buffer.from([0x61, 0x3a, 0xff]).toString('base64'),
      ],
    ]
    for (const value of values)
      expect(parseBasic(headWith(`Basic ${value}`), LOOSE), value).toEqual({ kind: 'malformed' })
    expect(parseBasic(headWith('Basic'), LOOSE)).toEqual({ kind: 'malformed' })
  })
})

describe('C4.13 the challenge', () => {
  it('holds the realm alone when no credentials were sent', () => {
    expect(tokenChallenge({ realm: 'https://api.example.test' })).toBe(
      'Bearer realm="https://api.example.test"',
    )
  })

  it('holds error, description and scope where there are such', () => {
    expect(
      tokenChallenge({
        realm: 'r',
        error: 'insufficient_scope',
        description: 'Ask for more.',
        scope: 'a b',
      }),
    ).toBe('Bearer realm="r", error="insufficient_scope", error_description="Ask for more.", scope="a b"')
  })

  it('C4.13 is of the scheme DPoP where it is told so, with the algorithms of proofs at its end', () => {
    expect(tokenChallenge({ scheme: 'DPoP', realm: 'r', error: 'use_dpop_nonce', algs: 'ES256 PS256' })).toBe(
      'DPoP realm="r", error="use_dpop_nonce", algs="ES256 PS256"',
    )
  })

  it('escapes quotes and backslashes, and carries nothing that ends a header', () => {
    expect(quotedString('a"b\\c')).toBe('"a\\"b\\\\c"')
    for (const text of ['a\r\nb', 'a\0', 'é', '\u2028'])
      expect(() => quotedString(text), text).toThrow(RangeError)
  })
})
