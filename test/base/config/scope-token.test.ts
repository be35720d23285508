import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CODE_PATTERN } from '../../../src/identity/directory/records/schema.ts'
import {
  businessTarget,
  isScopeValue,
  parseTarget,
  readCode,
  splitScope,
} from '../../../src/base/config/scopes/scope-token.ts'
import { sourceFiles } from '../../support/source-files.ts'
import { ROOT } from '../../support/spawn-postern.ts'

describe('T3.11 codes and scope values', () => {
  it('hold scope tokens of RFC 6749 §3.3 and nothing else', () => {
    for (let unit = 0; unit <= 0xffff; unit++) {
      const character = String.fromCharCode(unit)
      const isToken = unit === 0x21 || (unit >= 0x23 && unit <= 0x5b) || (unit >= 0x5d && unit <= 0x7e)
      if (isScopeValue(`a${character}b`) !== isToken) expect([unit, isToken]).toEqual([unit, !isToken])
      const isCode = isToken && character !== '/'
      if ((readCode(`a${character}b`) !== undefined) !== isCode)
        expect([unit, isCode]).toEqual([unit, !isCode])
    }
    for (const none of ['', '.', '..', 'a/b', 'a b', 'a\n'])
      expect([none, readCode(none)]).toEqual([none, undefined])
  })

  it('C5.4 every code that a directory may hold is one, and picks its business', () => {
    fc.assert(
      fc.property(fc.stringMatching(new RegExp(CODE_PATTERN.replace('(?!\\.{1,2}$)', ''))), (text) => {
        if (!new RegExp(CODE_PATTERN).test(text)) return
        const code = readCode(text)!
        expect(parseTarget(businessTarget(code))).toEqual({ level: 'business', business: text })
      }),
    )
  })

  it('C6.1.1 a scope is split at runs of spaces, or is none', () => {
    expect(splitScope('  a  target:b/A ')).toEqual(['a', 'target:b/A'])
    expect(splitScope('a\tb')).toBeUndefined()
  })

  it('are made in one file', () => {
    const makers = sourceFiles(join(ROOT, 'src')).filter((file) =>
      /\bas (Code|ScopeValue|ScopeText)\b/.test(readFileSync(file, 'utf8')),
    )
    expect(makers.map((file) => file.replace(/^.*\/src\//, ''))).toEqual([
      'base/config/scopes/scope-token.ts',
    ])
  })
})
