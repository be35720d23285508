/** Text files that operators write: the configuration, and what `file:` or an option of a command names. */
import { type Buffer, isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'

/** It is no plain UTF-8. The message names the line, and says what to do. */
export class NotTextError extends Error {
  override readonly name = 'NotTextError'
  /** From 1. */
  readonly line: number

  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

const UTF_8 = new TextDecoder()
const LINE_END = 0x0a
const NUL = 0

/** Whether a file begins as UTF-16, as some editors save it. */
const startsAsUtf16 = (bytes: Buffer): boolean =>
  bytes.length > 1 && [0xfffe, 0xfeff].includes(bytes.readUInt16BE())

/** The first line that `isWrong` holds for. A line end is never a part of another character. */
function lineThat(isWrong: (line: Buffer) => boolean, bytes: Buffer): number {
  let line = 1
  let from = 0
  for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, from)) {
    if (isWrong(bytes.subarray(from, end))) return line
    line++
    from = end + 1
  }
  return line
}

/** The text without a byte order mark at its start. @throws NotTextError */
export function textOfBytes(bytes: Buffer): string {
  if (startsAsUtf16(bytes)) throw new NotTextError(1, 'it is UTF-16: save it as UTF-8')
  if (!isUtf8(bytes)) {
    const line = lineThat((part) => !isUtf8(part), bytes)
    throw new NotTextError(line, `line ${line} is not UTF-8: save the file as UTF-8`)
  }
  if (bytes.includes(NUL)) {
    const line = lineThat((part) => part.includes(NUL), bytes)
    throw new NotTextError(line, `line ${line} holds a NUL, as UTF-16 does: save the file as UTF-8`)
  }
  return UTF_8.decode(bytes)
}

/** A file as `textOfBytes` reads it. @throws NotTextError, and as the file system does */
export const readText = (path: string): string => textOfBytes(readFileSync(path))

/** The one that editors and `echo` write behind a value. */
export const withoutLineEnd = (text: string): string => text.replace(/\r?\n$/, '')

/** The value that is all of a file. @throws NotTextError, and as the file system does */
export const readValue = (path: string): string => withoutLineEnd(readText(path))

/** Why a text cannot be a secret, to follow "it"; undefined if it can. */
export function faultOfSecret(text: string): string | undefined {
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text))
    return /[\r\n]/.test(text)
      ? 'has more than one line, which no header can hold'
      : 'holds a control character, which no header can hold'
  return text === text.trim() ? undefined : 'begins or ends with white space'
}

/** The same for a token, which is in a header as it is (RFC 6750 §2.1). */
export function faultOfToken(text: string): string | undefined {
  if (text === '') return 'is empty'
  const other = /^[!-~]+$/.test(text)
    ? undefined
    : 'holds other characters than visible ASCII, which no token can'
  return faultOfSecret(text) ?? other
}
