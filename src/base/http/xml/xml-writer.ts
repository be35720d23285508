import { Buffer, isUtf8 } from 'node:buffer'
import * as CODE from '../body/json-bytes.ts'
import { BYTE_ORDER_MARK, hasByteOrderMark, NotJson } from '../body/json-check.ts'
import { emptySequenceOf, ITEM, itemNameOf, type KeySequence, type NamedKey } from './key-sequences.ts'
import { DECLARATION, escapeName, escapeText, XSI } from './syntax.ts'
import { dataViewOf, type Utf8Text, utf8 } from './utf8-text.ts'
import { SlowDocument, tooLong, unconvertible, type WriterRules } from './writer-rules.ts'

const HEAD = Buffer.from(DECLARATION)
const XMLNS_XSI = Buffer.from(` xmlns:xsi="${XSI}"`)
/** Where the root is written first. Both declarations are put before it at the end, the second if there is a null. */
const FRONT = HEAD.length + XMLNS_XSI.length

/** Each ends a start tag, behind the name. Content that is always the same is part of it. */
const [OPENED, EMPTY, NUMBER] = [utf8('>'), utf8('/>'), utf8(' type="number">')]
const [ARRAY, EMPTY_ARRAY] = [utf8(' type="array">'), utf8(' type="array"/>')]
const [EMPTY_OBJECT, NIL] = [utf8(' type="object"/>'), utf8(' xsi:nil="true"/>')]
const WORDS = { true: utf8(' type="boolean">true'), false: utf8(' type="boolean">false'), null: NIL }
const [ROOT, NO_ERRORS, DATA] = [utf8('ApiResponse'), utf8('<Errors/>'), utf8('Data')]
const [ITEMS, VALUE] = [utf8('Items'), utf8('Value')]
/** The texts before and behind the value of a payload that is `Data`, and of one that is in `Data`. */
const AROUND_DATA = [utf8('<ApiResponse><Errors/>'), utf8('</ApiResponse>')] as const
const IN_DATA = [utf8('<ApiResponse><Errors/><Data>'), utf8('</Data></ApiResponse>')] as const
/** More bytes than any text above and the signs of two tags have together. */
const MARKUP_ROOM = 64

/** A number for each byte. */
const tableOf = (numberOf: (sign: string) => number): Int8Array =>
  Int8Array.from({ length: 256 }, (_, byte) => numberOf(String.fromCharCode(byte)))
/** Bytes of a string that XML text has too: all but `"`, `\`, `&`, `<`, `>`, controls, and the first byte of U+FFFE and U+FFFF. */
const IS_PLAIN = tableOf((sign) => Number(sign >= ' ' && sign !== '\xef' && !'"\\&<>'.includes(sign)))
/** ASCII in the name of an element: 2 for what it may begin with, 1 for what it may hold besides. */
const IN_NAME = tableOf((sign) => (/[A-Za-z_]/.test(sign) ? 2 : Number(/[\d.-]/.test(sign))))
/** The values of hexadecimal digits; others are -1. */
const HEX = tableOf((sign) => '0123456789abcdef'.indexOf(sign.toLowerCase()))
const codeOf = (sign: string): number => sign.charCodeAt(0)
const [LESS_THAN, GREATER_THAN, SLASH] = [codeOf('<'), codeOf('>'), codeOf('/')]
const [UNDERSCORE, SMALL_X] = [codeOf('_'), codeOf('x')]
/** The byte behind a backslash, and the character that both stand for. `u` is apart. */
const ESCAPED: ReadonlyMap<number, number> = new Map(
  Array.from('"\\/bfnrt', (sign) => [codeOf(sign), codeOf(JSON.parse(`"\\${sign}"`) as string)]),
)
const REFERENCES: ReadonlyMap<number, Utf8Text> = new Map(
  Array.from('&<>\r', (sign) => [codeOf(sign), utf8(escapeText(sign))]),
)
/** The bytes of a key that are escaped in the time that a new key takes. */
const ESCAPED_IN_TIME = 8
/** The depth of the element `Data`. A document has none: no depth is -1. */
const DEPTHS = { document: -1, payload: 0, envelope: 1 } as const
/** Bits for what was found: a null, a character that XML cannot hold, more bytes than may be written. */
const [HAS_NIL, IS_UNFIT, IS_TOO_LONG] = [1, 2, 4]

/** An object or array that is open. */
interface Level {
  readonly isObject: boolean
  readonly name: Utf8Text
  /** The name of an array's items. */
  readonly itemName: Utf8Text
  /** The keys of an object that were read: a sequence while that is known or can be added, then a set. */
  sequence: KeySequence | undefined
  keys: Set<string> | undefined
  readonly outer: Level | undefined
}

/**
 * Writes the XML of a JSON text (C7.5) in one pass, from bytes to bytes. It refuses what `parseJson` refuses.
 *
 * The output always has room for what is left of the text: what takes no more bytes than in JSON is copied without a look at the
 * room. Before anything longer, such as a tag or a reference, `makeRoom` is called.
 */
class XmlWriter {
  private readonly source: Buffer
  private readonly sourceView: DataView
  private readonly rules: WriterRules
  private readonly noKeys: KeySequence
  /** The depth of the element `Data`, which has no mark when it is empty. */
  private readonly dataDepth: number
  private at = 0
  private out: Buffer
  private view: DataView
  private end = FRONT
  private level: Level | undefined
  private depth = 0
  private nodes = 0
  private newKeys = 0
  /** The names of the next value's element, and of its items if it is an array. */
  private name: Utf8Text
  private itemName: Utf8Text = ITEM
  private found = 0
  /** The state before a member of an envelope that is not `Data`. Behind the member it is restored, which leaves the member out. */
  private beforeMember: { readonly end: number; readonly found: number } | undefined

  constructor(source: Buffer, rules: WriterRules) {
    this.source = source
    this.sourceView = dataViewOf(source)
    this.rules = rules
    this.noKeys = emptySequenceOf(rules.items)
    this.out = Buffer.allocUnsafe(FRONT + 2 * source.length + 4 * MARKUP_ROOM)
    this.view = dataViewOf(this.out)
    this.dataDepth = DEPTHS[rules.layout.kind]
    this.name = rules.layout.kind === 'document' ? utf8(escapeName(rules.layout.root)) : ROOT
  }

  write(): Buffer {
    if (!isUtf8(this.source)) throw new NotJson('it is not UTF-8')
    if (hasByteOrderMark(this.source)) this.at = BYTE_ORDER_MARK.length
    const nameEnd = 1 + this.name.to
    const behind = this.rules.layout.kind === 'payload' ? this.beginEnvelope() : undefined
    do while (this.writeValue());
    while (this.hasNext())
    this.skipBlanks()
    if (this.at < this.source.length) throw new NotJson('something follows the value')
    this.makeRoom()
    if (behind !== undefined) this.copy(behind)
    if ((this.found & IS_UNFIT) > 0) throw unconvertible('a string holds a character that XML 1.0 cannot')
    if ((this.found & IS_TOO_LONG) > 0) throw tooLong(this.rules.most)
    let start = FRONT
    // The namespace is declared behind the root's name: what is before that moves to the front.
    if ((this.found & HAS_NIL) > 0) {
      start -= XMLNS_XSI.length
      this.out.copyWithin(start, FRONT, FRONT + nameEnd)
      this.out.set(XMLNS_XSI, start + nameEnd)
    }
    start -= HEAD.length
    this.out.set(HEAD, start)
    return this.out.subarray(start, this.end)
  }

  /** Begins the envelope of a payload: by its first byte, `Data` is the value itself or holds it. @returns what ends it */
  private beginEnvelope(): Utf8Text {
    const byte = this.skipBlanks()
    const isData = byte === CODE.OPEN_OBJECT || byte === CODE.LOWER_N
    const [before, behind] = isData ? AROUND_DATA : IN_DATA
    this.copy(before)
    this.name = isData ? DATA : byte === CODE.OPEN_LIST ? ITEMS : VALUE
    this.itemName = itemNameOf('Items', this.rules.items)
    return behind
  }

  /** @returns the next byte that is no blank, which is not passed; 0 at the end */
  private skipBlanks(): number {
    let byte = this.source[this.at] ?? 0
    while (byte <= CODE.SPACE && CODE.isWhiteSpace(byte)) byte = this.source[++this.at] ?? 0
    return byte
  }

  /** Writes the next value, or the start tag of one that holds others. @returns whether it does, so that the first is next */
  private writeValue(): boolean {
    const byte = this.skipBlanks()
    if (++this.nodes > this.rules.nodes) throw new NotJson('it has too many values')
    this.makeRoom(this.name)
    if (byte === CODE.QUOTE) this.writeString()
    else if (byte === CODE.OPEN_OBJECT || byte === CODE.OPEN_LIST) return this.open(byte === CODE.OPEN_OBJECT)
    else if (byte === CODE.MINUS || CODE.isDigit(byte)) this.writeNumber(byte)
    else this.writeWord(byte)
    return false
  }

  /** Passes what follows a value that is whole, and ends what ends there. @returns whether another value is next */
  private hasNext(): boolean {
    for (let { level } = this; level !== undefined; { level } = this) {
      const byte = this.skipBlanks()
      if (this.beforeMember !== undefined && this.depth === 1) {
        ;({ end: this.end, found: this.found } = this.beforeMember)
        this.beforeMember = undefined
      }
      this.at++
      if (byte === CODE.COMMA) {
        this.nameValue(level)
        return true
      }
      if (byte !== closeOf(level.isObject)) throw new NotJson('it goes on otherwise')
      this.level = level.outer
      this.depth--
      this.makeRoom(level.name)
      this.closeTag(level.name)
    }
    return false
  }

  /** Opens an object or array. @returns false if it is empty, and so is whole */
  private open(isObject: boolean): boolean {
    if (this.depth >= this.rules.depth) throw new NotJson(`it is nested deeper than ${this.rules.depth}`)
    this.at++
    if (this.skipBlanks() === closeOf(isObject)) {
      this.at++
      this.startTag(!isObject ? EMPTY_ARRAY : this.depth === this.dataDepth ? EMPTY : EMPTY_OBJECT)
      return false
    }
    this.startTag(isObject ? OPENED : ARRAY)
    this.depth++
    const { name, itemName, noKeys: sequence, level: outer } = this
    this.level = { isObject, name, itemName, sequence, keys: undefined, outer }
    this.nameValue(this.level)
    return true
  }

  /** Names the next value: by its key, which is passed with the colon, or as an item. The items of an item are `Item`. */
  private nameValue(level: Level): void {
    if (!level.isObject) {
      this.name = level.itemName
      this.itemName = ITEM
      return
    }
    if (this.skipBlanks() !== CODE.QUOTE) throw new NotJson('a key is missing')
    this.at++
    const known = level.sequence?.next(this.source, this.at)
    if (known !== undefined) {
      this.at += known.length
      level.sequence = known
    }
    const { key, name, itemName } = known ?? this.readNewKey(level)
    this.name = name
    this.itemName = itemName
    if (this.depth !== this.dataDepth) return
    if (key !== 'Data') this.beforeMember = { end: this.end, found: this.found }
    else {
      this.makeRoom()
      this.copy(NO_ERRORS)
    }
  }

  private readNewKey(level: Level): NamedKey {
    const { source, at: from } = this
    const kind = this.passKey()
    const to = this.at++
    if (this.skipBlanks() !== CODE.COLON) throw new NotJson('a colon is missing')
    this.at++
    this.newKeys += kind === 'name' ? 1 : 1 + Math.ceil((to - from) / ESCAPED_IN_TIME)
    if (this.newKeys > (this.rules.quick?.newKeys ?? Infinity)) throw new SlowDocument()
    const key = kind === 'escaped' ? unescapedKey(source, from, to) : source.toString('utf8', from, to)
    const keys = (level.keys ??= level.sequence?.keys() ?? new Set())
    if (keys.size === keys.add(key).size) throw new NotJson('a key is there twice')
    const name = kind === 'name' ? { bytes: this.sourceView, from, to } : utf8(escapeName(key))
    const read = { key, name, itemName: itemNameOf(key, this.rules.items) }
    level.sequence &&= level.sequence.add(read, source.subarray(from, this.at))
    if (level.sequence !== undefined) level.keys = undefined
    return read
  }

  /** Goes on to the quote that ends a key. `name`: it is the name of its element as it is, in ASCII. */
  private passKey(): 'name' | 'text' | 'escaped' {
    const { source } = this
    let byte = source[this.at] ?? 0
    let kind: ReturnType<typeof this.passKey> = IN_NAME[byte] === 2 ? 'name' : 'text'
    for (; byte !== CODE.QUOTE; byte = source[++this.at] ?? 0) {
      if (IN_NAME[byte] !== 0 && !(byte === UNDERSCORE && source[this.at + 1] === SMALL_X)) continue
      if (byte < CODE.SPACE) throw new NotJson('a key is not closed, or holds a control character')
      if (byte === CODE.BACKSLASH) this.at++
      if (byte === CODE.BACKSLASH || kind === 'escaped') kind = 'escaped'
      else kind = 'text'
    }
    return kind
  }

  private writeString(): void {
    if (this.source[++this.at] === CODE.QUOTE) this.startTag(EMPTY)
    else {
      this.startTag(OPENED)
      for (let byte = this.copyPlain(); byte !== CODE.QUOTE; byte = this.copyPlain()) this.writeSign(byte)
      this.makeRoom(this.name)
      this.closeTag(this.name)
    }
    this.at++
  }

  /** Copies the part of a string that is plain. @returns the byte behind it */
  private copyPlain(): number {
    const { source, out } = this
    let { at, end } = this
    let byte = source[at] ?? 0
    for (; IS_PLAIN[byte] === 1; byte = source[++at] ?? 0) out[end++] = byte
    this.at = at
    this.end = end
    return byte
  }

  /** Writes the character that begins with a byte that is not plain. */
  private writeSign(byte: number): void {
    if (byte < CODE.SPACE) throw new NotJson('a string is not closed, or holds a control character')
    this.at++
    if (byte < 0x80) this.writeCharacter(byte === CODE.BACKSLASH ? this.readEscape() : byte)
    else {
      // U+FFFE and U+FFFF, and many that are fit, begin so.
      if (this.source[this.at] === 0xbf && (this.source[this.at + 1] ?? 0) >= 0xbe) this.found |= IS_UNFIT
      this.out[this.end++] = byte
    }
  }

  private readEscape(): number {
    const { source } = this
    const byte = source[this.at++] ?? 0
    const unit = byte === CODE.LOWER_U ? this.readUnit() : ESCAPED.get(byte)
    if (unit === undefined) throw new NotJson('an escape is wrong')
    if (unit < 0xd800 || unit > 0xdfff) return unit
    const isPair = source[this.at++] === CODE.BACKSLASH && source[this.at++] === CODE.LOWER_U
    const low = unit < 0xdc00 && isPair ? this.readUnit() : 0
    if (low < 0xdc00 || low > 0xdfff) throw new NotJson('half a surrogate pair')
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
  }

  private readUnit(): number {
    let unit = 0
    for (const to = this.at + 4; this.at < to; this.at++) {
      const digit = HEX[this.source[this.at] ?? 0] ?? -1
      if (digit < 0) throw new NotJson('an escape is wrong')
      unit = unit * 16 + digit
    }
    return unit
  }

  private writeCharacter(code: number): void {
    this.makeRoom()
    const reference = code <= GREATER_THAN ? REFERENCES.get(code) : undefined
    if (reference !== undefined) this.copy(reference)
    else if (code < 0x80) this.out[this.end++] = code
    else this.end += this.out.write(String.fromCodePoint(code), this.end)
    if (code < CODE.SPACE ? !CODE.isWhiteSpace(code) : code === 0xfffe || code === 0xffff)
      this.found |= IS_UNFIT
  }

  private writeNumber(first: number): void {
    this.startTag(NUMBER)
    let byte = first === CODE.MINUS ? this.copyByte(first) : first
    byte = byte === CODE.ZERO ? this.copyByte(byte) : this.copyDigits(byte)
    if (byte === CODE.POINT) byte = this.copyDigits(this.copyByte(byte))
    if (byte === CODE.LOWER_E || byte === CODE.UPPER_E) {
      byte = this.copyByte(byte)
      this.copyDigits(byte === CODE.PLUS || byte === CODE.MINUS ? this.copyByte(byte) : byte)
    }
    this.closeTag(this.name)
  }

  /** @returns the next byte */
  private copyByte(byte: number): number {
    this.out[this.end++] = byte
    return this.source[++this.at] ?? 0
  }

  /** Copies one digit or more. @returns the byte behind them */
  private copyDigits(first: number): number {
    if (!CODE.isDigit(first)) throw new NotJson('a digit is missing')
    let byte = first
    while (CODE.isDigit(byte)) byte = this.copyByte(byte)
    return byte
  }

  private writeWord(first: number): void {
    const word = first === CODE.LOWER_T ? 'true' : first === CODE.LOWER_F ? 'false' : 'null'
    for (let at = 0; at < word.length; at++)
      if (this.source[this.at++] !== word.charCodeAt(at)) throw new NotJson('it has a word that is none')
    const isEmptyData = word === 'null' && this.depth === this.dataDepth
    this.startTag(isEmptyData ? EMPTY : WORDS[word])
    if (word !== 'null') this.closeTag(this.name)
    else if (!isEmptyData) this.found |= HAS_NIL
  }

  /** @param rest what follows the name */
  private startTag(rest: Utf8Text): void {
    this.out[this.end++] = LESS_THAN
    this.copy(this.name)
    this.copy(rest)
  }

  private closeTag(name: Utf8Text): void {
    this.out[this.end++] = LESS_THAN
    this.out[this.end++] = SLASH
    this.copy(name)
    this.out[this.end++] = GREATER_THAN
  }

  /** Copies four bytes at a time. Up to three are too many, and are overwritten by the next ones. */
  private copy({ bytes, from, to }: Utf8Text): void {
    const { view } = this
    const shift = this.end - from
    for (let at = from; at < to; at += 4) view.setUint32(at + shift, bytes.getUint32(at))
    this.end = to + shift
  }

  /** Makes room for the tags of an element of this name, or any other markup, and for what is left of the text. */
  private makeRoom(name: Utf8Text = ITEM): void {
    const more = this.source.length - this.at + 2 * (name.to - name.from) + MARKUP_ROOM
    if (this.out.length - this.end < more) this.grow(name, more)
  }

  /**
   * Makes the output larger, or finds that the XML is too long or takes too long. XML that is too long is overwritten: the rest of
   * the text is read still, because it may be no JSON.
   */
  private grow(name: Utf8Text, more: number): void {
    if (this.end - FRONT + name.to - name.from > this.rules.most) {
      this.found |= IS_TOO_LONG
      this.end = this.beforeMember?.end ?? FRONT
    }
    if (this.end > (this.rules.quick?.bytes ?? Infinity)) throw new SlowDocument()
    const needed = this.end + more
    if (needed <= this.out.length) return
    const { out } = this
    this.out = Buffer.allocUnsafe(Math.max(needed, 2 * out.length))
    this.out.set(out.subarray(0, this.end))
    this.view = dataViewOf(this.out)
  }
}

const closeOf = (isObject: boolean): number => (isObject ? CODE.CLOSE_OBJECT : CODE.CLOSE_LIST)

function unescapedKey(source: Buffer, from: number, to: number): string {
  try {
    const key = JSON.parse(source.toString('utf8', from - 1, to + 1)) as string
    if (key.isWellFormed()) return key
  } catch {
    // A bad escape, as half a surrogate pair is.
  }
  throw new NotJson('an escape in a key is wrong')
}

/**
 * The XML document of a JSON text (C7.5), with the XML declaration, as UTF-8.
 * @throws NotJson for what `parseJson` refuses; Fault `answer_unconvertible` for text that XML cannot hold, `answer_too_large`;
 *   SlowDocument
 */
export const xmlOfJson = (json: Buffer, rules: WriterRules): Buffer => new XmlWriter(json, rules).write()
