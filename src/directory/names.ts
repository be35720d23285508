/** What the codes, ids and names of the directory may consist of. */
import { text } from '../config/schema.ts'
import { DIRECTION_CONTROLS } from '../kernel/clean-text.ts'

/**
 * A business or fund code. It is used as it is in a path segment and in a scope value (C3.4, C5.4), so it consists of
 * RFC 3986's pchar without ";" and "%", and is no dot segment.
 */
export const CODE_PATTERN = "^(?!\\.{1,2}$)[A-Za-z0-9._~!$&'()*+,=:@-]{1,64}$"
/** Names stand in a path of the admin API, where a client removes dot segments, encoded ones too (RFC 3986 §6.2.2.3). */
const NO_DOT_SEGMENT = '(?!\\.{1,2}$)'
/**
 * RFC 6749 appendix A.1, without the colon that ends the id in Basic credentials (RFC 7617 §2), and without spaces.
 */
export const CLIENT_ID_PATTERN = `^${NO_DOT_SEGMENT}[!-9;-~]{1,128}$`
/** Whatever a person can type on one line; no space at either end. */
export const USERNAME_PATTERN = `^${NO_DOT_SEGMENT}(?! )[^\\p{Cc}\\p{Cs}${DIRECTION_CONTROLS}]{1,128}(?<! )$`
/** No control character, no half of a character, no end of a line, and none that turns what stands around a name. */
const ON_ONE_LINE = `[^\\p{Cc}\\p{Cs}\\u2028\\u2029${DIRECTION_CONTROLS}]`
/** OIDC Core §2: at most 255 ASCII characters. It goes to backends in a header (C8.2). */
export const SUBJECT_PATTERN = '^[!-~]{1,255}$'

/** What a person can read on one line; no space at either end. As long as a user name: it stands in a path too. */
export const ROLE_PATTERN = `^${NO_DOT_SEGMENT}(?!\\s)${ON_ONE_LINE}{1,128}(?<!\\s)$`

const WITHOUT_CONTROLS = 'without characters that steer the direction of writing'

export const CLIENT_ID_EXPECTED =
  'a client id of at most 128 printable ASCII characters, without ":", and not "." or ".."'
export const USERNAME_EXPECTED = `a user name of at most 128 characters on one line, ${WITHOUT_CONTROLS}, and not "." or ".."`
export const ROLE_EXPECTED = `a name of at most 128 characters on one line, ${WITHOUT_CONTROLS}, and not "." or ".."`

/** The code of a business or fund, as a key of a section. */
export const code = (description: string) =>
  text({ description, pattern: CODE_PATTERN, expected: 'a code that can stand in a path, such as "ACME"' })

/** The name of a business, a fund or a client: it stands on pages and in tables. */
export const NAME_PATTERN = `^${ON_ONE_LINE}{1,256}$`
export const NAME_EXPECTED = `a text of at most 256 characters on one line, ${WITHOUT_CONTROLS}`

export const nameForPeople = (description: string) =>
  text({ description, pattern: NAME_PATTERN, expected: NAME_EXPECTED })

/** A part of a person's name, as a claim. It stands on pages. */
export const claimOfName = (description: string) =>
  text({ description, pattern: `^[^${DIRECTION_CONTROLS}]*$`, expected: `a name ${WITHOUT_CONTROLS}` })
