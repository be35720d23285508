import { joinScope, readCode, splitScope, type Code } from '../../src/base/config/scopes/scope-token.ts'
import type { Principal } from '../../src/base/contracts/people/principal.ts'

/** A business or fund code of a test. */
export function code(text: string): Code {
  const read = readCode(text)
  if (read === undefined) throw new TypeError(`no code: ${text}`)
  return read
}

/** A principal's scope of a test: space-delimited. */
export function scopeOf(text: string): Pick<Principal, 'scope' | 'scopes'> {
  const values = splitScope(text)
  if (values === undefined) throw new TypeError(`no scope: ${text}`)
  return { scope: joinScope(values), scopes: new Set(values) }
}
