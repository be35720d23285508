/** The password that an operator gives to a user. */
import type { Problems } from '../config/problems.ts'
import { ARGON2_COST, formatArgon2 } from './secret-hash.ts'

/** Characters (OWASP ASVS 4.0 §2.1.1, §2.1.2). */
export const PASSWORD_LENGTH = { least: 12, most: 1024 } as const

/** In place of the hash of a password that was refused, so that the other problems of the record are told too. */
export const NO_PASSWORD = formatArgon2({ ...ARGON2_COST, salt: Buffer.alloc(16), tag: Buffer.alloc(32) })

/** Reports what is wrong with a password, and never shows it. */
export function isPassword(given: unknown, problems: Problems): given is string {
  const { least, most } = PASSWORD_LENGTH
  if (typeof given === 'string' && given.length >= least && given.length <= most) return true
  const expected = `expected a text of ${least} to ${most} characters`
  const trouble =
    given === undefined ? 'is missing' : typeof given === 'string' ? 'is too short or too long' : 'is no text'
  problems.error(['password'], `${trouble}: ${expected}`)
  return false
}
