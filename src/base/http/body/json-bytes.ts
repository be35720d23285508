/** The characters of JSON's grammar (RFC 8259 §2), as bytes and as UTF-16 code units. */
export const SPACE = 0x20
export const QUOTE = 0x22
export const PLUS = 0x2b
export const COMMA = 0x2c
export const MINUS = 0x2d
export const POINT = 0x2e
export const ZERO = 0x30
export const COLON = 0x3a
export const UPPER_E = 0x45
export const OPEN_LIST = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_LIST = 0x5d
export const LOWER_E = 0x65
export const LOWER_F = 0x66
export const LOWER_N = 0x6e
export const LOWER_T = 0x74
export const LOWER_U = 0x75
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d

export const isDigit = (code: number): boolean => code >= ZERO && code <= ZERO + 9

/** Space, tab, line feed, carriage return. */
export const isWhiteSpace = (code: number): boolean =>
  code === SPACE || code === 0x09 || code === 0x0a || code === 0x0d
