import { Fault } from '../../kernel/faults.ts'
import { parseContentType } from '../head/media-type.ts'
import { BYTE_ORDER_MARK } from '../body/json-check.ts'
import { bufferOf, decodeUtf8, printable } from '../body/read-body.ts'

/** The text of a document, without its byte order mark, and the encoding that its declaration may name. */
export interface DecodedXml {
  readonly text: string
  /** In lower case. Undefined: whatever the declaration names was overruled by the charset parameter. */
  readonly encoding: string | undefined
}

export const UTF_8 = 'utf-8'

type Decoder = (bytes: Uint8Array) => string

/** `fatal` refuses half a surrogate pair and an odd byte at the end. One byte order mark is left out. */
const utf16 = (label: 'utf-16le' | 'utf-16be'): Decoder => {
  const decoder = new TextDecoder(label, { fatal: true })
  return (bytes) => decoder.decode(bytes)
}

/** TextDecoder takes this name for windows-1252 (WHATWG Encoding §4.2), which has other characters at 0x80 to 0x9F. */
const latin1: Decoder = (bytes) => bufferOf(bytes).toString('latin1')

interface Marked {
  readonly mark: readonly number[]
  readonly encoding: string
  readonly decode: Decoder
}

const BYTE_ORDER_MARKS: readonly Marked[] = [
  { mark: BYTE_ORDER_MARK, encoding: UTF_8, decode: decodeUtf8 },
  { mark: [0xfe, 0xff], encoding: 'utf-16', decode: utf16('utf-16be') },
  { mark: [0xff, 0xfe], encoding: 'utf-16', decode: utf16('utf-16le') },
]

/** By charset, in lower case. */
export const DECODERS: ReadonlyMap<string, Decoder> = new Map([
  [UTF_8, decodeUtf8],
  ['iso-8859-1', latin1],
])

const refused = (why: string, cause?: unknown): Fault =>
  new Fault('body_malformed', { say: `XML: ${why}`, cause, quotes: true })

/** Bytes in which a declaration is looked for. A longer one is not found, and then refused as a contradiction. */
const LONGEST_DECLARATION = 1024
const DECLARED = /^<\?xml[ \t\r\n][^>]*?[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z][\w.-]*)["']/

/** The encoding that a document without a byte order mark declares, in lower case. */
function declaredIn(bytes: Uint8Array): string | undefined {
  return DECLARED.exec(latin1(bytes.subarray(0, LONGEST_DECLARATION)))?.[1]?.toLowerCase()
}

/** In lower case. Undefined where none is named, or the type cannot be read. */
export const charsetOf = (contentType: string | undefined): string | undefined =>
  contentType === undefined
    ? undefined
    : parseContentType(contentType)
        ?.parameters.find(({ name }) => name === 'charset')
        ?.value.toLowerCase()

/**
 * Reads the bytes of a document by RFC 7303 §3: a byte order mark decides, else the `charset` of the Content-Type, else
 * the XML declaration, else it is UTF-8.
 * @throws Fault `body_malformed` for any other encoding, and for bytes that are not of theirs
 */
export function decodeXml(bytes: Uint8Array, contentType: string | undefined): DecodedXml {
  const marked = BYTE_ORDER_MARKS.find(({ mark }) => mark.every((byte, at) => bytes[at] === byte))
  if (marked !== undefined) return { text: decode(marked.decode, bytes), encoding: marked.encoding }
  const charset = charsetOf(contentType)
  const encoding = charset ?? declaredIn(bytes) ?? UTF_8
  const decoder = DECODERS.get(encoding)
  if (encoding === 'utf-16') throw refused('it is said to be UTF-16, but has no byte order mark')
  if (decoder === undefined) throw refused(`the encoding ${printable(encoding)} cannot be read`)
  return { text: decode(decoder, bytes), encoding: charset === undefined ? encoding : undefined }
}

/** Reads a client's document, which may be UTF-8 only: it is sent on byte for byte. Fault `unsupported_media_type`. */
export function decodeBodyXml(bytes: Uint8Array): DecodedXml {
  const declared = declaredIn(bytes) ?? UTF_8
  if (declared !== UTF_8) throw new Fault('unsupported_media_type')
  try {
    return { text: decodeUtf8(bytes), encoding: UTF_8 }
  } catch (cause) {
    throw new Fault('unsupported_media_type', { cause })
  }
}

function decode(decoder: Decoder, bytes: Uint8Array): string {
  try {
    return decoder(bytes)
  } catch (cause) {
    throw cause instanceof Fault ? cause : refused('it is not valid UTF-16', cause)
  }
}

/** `subset`: a document type declaration with an internal subset, which may declare entities and default attributes. */
type Doctype = 'none' | 'plain' | 'subset'

/** The text before the root, and how it ends. */
const SKIPPED: readonly (readonly [string, string])[] = [
  ['<!--', '-->'],
  ['<?', '?>'],
]
const BLANKS = /[\t\n\r ]*/y

/**
 * The document type declaration of a document (XML 1.0 §2.8). Looked for before the document is parsed: saxes reports
 * one only when it has read all of it, and without its parts. The result is right for what saxes then accepts.
 * @param instructions whether processing instructions may be before it: one of the two is what a body is refused for
 */
export function doctypeOf(text: string, instructions = true): Doctype {
  let at = 0
  for (;;) {
    BLANKS.lastIndex = at
    BLANKS.test(text)
    at = BLANKS.lastIndex
    const skipped = SKIPPED.find(
      ([start]) => text.startsWith(start, at) && (instructions || start === '<!--' || isDeclared(text, at)),
    )
    if (skipped === undefined) break
    const [start, end] = skipped
    const found = text.indexOf(end, at + start.length)
    if (found < 0) return 'none'
    at = found + end.length
  }
  return text.startsWith('<!DOCTYPE', at) ? kindOf(text, at) : 'none'
}

const isDeclared = (text: string, at: number): boolean => at === 0 && text.startsWith('<?xml')

/** Whether a `[` comes before the declaration's end. Its system and public identifiers are quoted. */
function kindOf(text: string, start: number): Doctype {
  let quote = ''
  for (let at = start; at < text.length; at++) {
    const character = text.charAt(at)
    if (quote !== '') {
      if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '[') return 'subset'
    else if (character === '>') return 'plain'
  }
  return 'subset'
}
