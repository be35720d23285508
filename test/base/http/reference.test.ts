import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isBelow, referenceForLog, resolveReference } from '../../../src/base/http/head/reference.ts'
import { anyText } from '../../support/any-text.ts'

const BASE = { origin: 'http://a', path: '/b/c/d', query: '?q' }

describe('references in an upstream’s answer', () => {
  // RFC 3986 §5.4.1, but for those with `;`, which a path may not hold, and other schemes.
  it.each([
    ['g', 'http://a/b/c/g'],
    ['./g', 'http://a/b/c/g'],
    ['g/', 'http://a/b/c/g/'],
    ['/g', 'http://a/g'],
    ['//g', 'http://g/'],
    ['?y', 'http://a/b/c/d?y'],
    ['g?y', 'http://a/b/c/g?y'],
    ['#s', 'http://a/b/c/d?q'],
    ['g#s', 'http://a/b/c/g'],
    ['g?y#s', 'http://a/b/c/g?y'],
    ['', 'http://a/b/c/d?q'],
    ['.', 'http://a/b/c/'],
    ['./', 'http://a/b/c/'],
    ['..', 'http://a/b/'],
    ['../', 'http://a/b/'],
    ['../g', 'http://a/b/g'],
    ['../..', 'http://a/'],
    ['../../', 'http://a/'],
    ['../../g', 'http://a/g'],
    ['HTTP://A:80/g', 'http://a/g'],
  ])('C8.8 %j is resolved as RFC 3986 says', (reference, expected) => {
    const url = resolveReference(reference, BASE)
    expect(typeof url === 'string' ? url : url.origin + url.path + url.query).toBe(expected)
  })

  it.each([
    'g:h',
    'mailto:a@b',
    'http:g',
    '../../../g',
    '/./g',
    '/../g',
    '//u@h/g',
    '//h%2fx/g',
    'a\\b',
    'a;b',
  ])('C8.8 %j is refused', (reference) => {
    expect(resolveReference(reference, BASE)).toBeTypeOf('string')
  })

  it('C8.8 whatever is resolved is what a browser makes of it, or nothing', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '.',
        '..',
        '/',
        '//',
        '\\',
        '%2e',
        '%2F',
        ':',
        '@',
        '?',
        '#',
        ';',
        'a',
        'b.c',
        '%',
        ' ',
      ),
      fc.string({ maxLength: 3 }),
    )
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
        (reference) => {
          const url = resolveReference(reference, BASE)
          if (typeof url === 'string') return
          const browser = new URL(reference, BASE.origin + BASE.path + BASE.query)
          expect(url.origin).toBe(browser.origin)
          expect(url.path).not.toMatch(/\/\.{1,2}(\/|$)|[\\;\s]|\/\//)
          const canonical = (path: string) => path.split('/').map((each) => decodeURIComponent(each))
          expect(canonical(url.path)).toEqual(canonical(browser.pathname))
        },
      ),
    )
  })

  it('C8.8 a path is below another one only at a slash', () => {
    expect(['/a', '/a/b', '/ab', '/'].map((path) => isBelow(path, '/a'))).toEqual([true, true, false, false])
    expect(['/a', '/'].map((path) => isBelow(path, ''))).toEqual([true, true])
  })

  it('C8.8 the log gets a reference without its secrets, in visible ASCII, of any text', () => {
    expect(referenceForLog('https://u:p@h/a?b=c#d')).toBe('https://h/a')
    expect(referenceForLog('user:secret@h/a?b=c')).toBe('h/a')
    expect(referenceForLog('/users/@me')).toBe('/users/@me')
    expect(referenceForLog('/a\r\nb\u202E')).toBe('/a%0D%0Ab%E2%80%AE')
    fc.assert(
      fc.property(anyText(), (text) => {
        expect(referenceForLog(text)).toMatch(/^[!-~]*$/)
      }),
    )
  })
})
