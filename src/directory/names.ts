/** What the codes, ids and names of the directory may consist of. */
import { text } from '../config/schema.ts'

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
export const USERNAME_PATTERN = `^${NO_DOT_SEGMENT}(?! )[^\\p{Cc}\\p{Cs}]{1,128}(?<! )$`
/** No control character, no half of a character, and no end of a line. */
const ON_ONE_LINE = '[^\\p{Cc}\\p{Cs}\\u2028\\u2029]'
/** OIDC Core §2: at most 255 ASCII characters. It goes to backends in a header (C8.2). */
export const SUBJECT_PATTERN = '^[!-~]{1,255}$'

/** What a person can read on one line; no space at either end. As long as a user name: it stands in a path too. */
export const ROLE_PATTERN = `^${NO_DOT_SEGMENT}(?!\\s)${ON_ONE_LINE}{1,128}(?<!\\s)$`

export const CLIENT_ID_EXPECTED =
  'a client id of at most 128 printable ASCII characters, without ":", and not "." or ".."'
export const USERNAME_EXPECTED = 'a user name of at most 128 characters on one line, and not "." or ".."'
export const ROLE_EXPECTED = 'a name of at most 128 characters on one line, and not "." or ".."'

/** The code of a business or fund, as a key of a section. */
export const code = (description: string) =>
  text({ description, pattern: CODE_PATTERN, expected: 'a code that can stand in a path, such as "ACME"' })

/** The name of a business, a fund or a client: it stands on pages and in tables. */
export const nameForPeople = (description: string) =>
  text({
    description,
    pattern: `^${ON_ONE_LINE}{1,256}$`,
    expected: 'a text of at most 256 characters on one line',
  })
