/**
 * Follows names along the letters of wanted ones, while they are decoded and normalised (C8.7): a name is given up at the first
 * letter that none of these has.
 */
import { codesOf, folded, HIDDEN, LEFT_OUT, plainFolds } from './fold.ts'
import { BYTE, hexAtEnd, hexOf, PERCENT, SMALL_U, textOfUnits } from './member-names.ts'

const [NUL, DOT, QUESTION, OPEN, CLOSE] = [0, 0x2e, 0x3f, 0x5b, 0x5d]
const DIGIT_2 = 0x32
/** Stands for what no wanted reading has. */
const NOWHERE = -1
/** No reading has it, unless normalising joins it to the character before it. */
const DOT_ABOVE = 0x3_07
export const COMBINING_MARK = /\p{M}/u

/** Where one is on the way along the letters of the wanted readings. */
export interface TrieNode {
  readonly next: Map<number, TrieNode>
  /** The reading that ends here. */
  reading: string | undefined
}

export const newStep = (): TrieNode => ({ next: new Map(), reading: undefined })

/** A byte of a character, or half a surrogate pair: with what follows it makes a character. */
const isPart = (code: number): boolean => code >= BYTE || (code >= 0xd8_00 && code < 0xe0_00)

/** Takes what is decoded. */
interface Sink {
  /** Whether it is one name: then nothing behind its end is of interest. */
  readonly isOne: boolean
  /** @returns false if nothing more can be found */
  take(code: number): boolean
  end(): void
}

/** Follows one name: up to its first bracket or dot, and as a variable, without these. */
export class NameFollower implements Sink {
  readonly isOne = true
  readonly found: string[] = []
  readonly #isPlain: boolean
  #here: TrieNode
  #hasBegun = false
  #hasEnded = false
  #isFirstName = true
  #isVariable = true

  /** @param isPlain whether the wanted readings are of ASCII: no mark belongs to them */
  constructor(start: TrieNode, isPlain: boolean) {
    this.#here = start
    this.#isPlain = isPlain
  }

  take(code: number): boolean {
    switch (code) {
      case HIDDEN:
        return true
      case NUL:
        // A name ends here, or continues without it.
        if (!this.#hasEnded) this.end()
        this.#hasEnded = true
        this.#isVariable = false
        return this.#isFirstName
      case OPEN:
      case DOT:
      case CLOSE:
        if (this.#hasBegun && this.#isFirstName) {
          this.#note()
          this.#isFirstName = false
        }
        this.#isVariable &&= code !== CLOSE
        return this.#isFirstName || this.#isVariable
      case QUESTION:
        this.#isVariable = false
        return this.#isFirstName && !this.#hasBegun
      default:
        return this.#letter(code)
    }
  }

  #letter(code: number): boolean {
    const next = this.#here.next.get(code)
    if (next === undefined)
      return !this.#isPlain && code !== NOWHERE && COMBINING_MARK.test(String.fromCodePoint(code))
    this.#hasBegun = true
    this.#here = next
    return true
  }

  end(): void {
    if (this.#isFirstName || this.#isVariable) this.#note()
  }

  #note(): void {
    const { reading } = this.#here
    if (reading !== undefined) this.found.push(reading)
  }
}

const [AMPERSAND, SEMICOLON, EQUALS] = [0x26, 0x3b, 0x3d]

/** Follows the names of all pairs that a text may be divided into. */
export class PairsFollower implements Sink {
  readonly isOne = false
  /** Whether a wanted name may be among them. */
  hasFound = false
  readonly #start: TrieNode
  readonly #isPlain: boolean
  /** Undefined where no name is followed: in a value, or behind what no wanted name has. */
  #name: NameFollower | undefined

  /** @param isPair whether the text begins with a name */
  constructor(start: TrieNode, isPlain: boolean, isPair: boolean) {
    this.#start = start
    this.#isPlain = isPlain
    if (isPair) this.#name = this.#next()
  }

  take(code: number): boolean {
    const isSeparator = code === AMPERSAND || code === SEMICOLON
    if (isSeparator || code === EQUALS) this.end()
    if (isSeparator) this.#name = this.#next()
    else if (this.#name?.take(code) === false) this.#giveUp()
    return !this.hasFound
  }

  end(): void {
    this.#name?.end()
    this.#giveUp()
  }

  #next(): NameFollower {
    return new NameFollower(this.#start, this.#isPlain)
  }

  #giveUp(): void {
    this.hasFound ||= (this.#name?.found.length ?? 0) > 0
    this.#name = undefined
  }
}

/** Decodes and normalises a text for what follows the names in it. */
export class DecodedWalk {
  /** Whether what was found is so, and not only may be. */
  isSure = true
  /** Whether nothing is known. */
  isLost = false
  readonly #sink: Sink
  readonly #isPlain: boolean
  /** Which readings are followed still: those that are not normalised, and those that are. */
  #isTyped = true
  #isNormal = true
  /** Kept back until more is read: the beginning of an escape, or the first parts of a character. */
  readonly #pending: number[] = []
  /** How often each of these was normalised: parts join those alone that were decoded with them. */
  readonly #rounds: number[] = []
  #count = 0
  #hasEscapes = false

  constructor(sink: Sink, isPlain: boolean) {
    this.#sink = sink
    this.#isPlain = isPlain
  }

  follow(name: string): void {
    let before = NOWHERE
    for (let at = 0; at < name.length; at += 1) {
      const code = name.codePointAt(at) ?? 0
      if (code > 0xff_ff) at += 1
      const plain = plainFolds[code]
      if (plain === LEFT_OUT) continue
      if (code === PERCENT) this.#hasEscapes = true
      if (code === DIGIT_2 && this.#endsInPercent() && name[at + 1] === '5') {
        // Still a percent sign: chains of these are long.
        at += 1
        continue
      }
      if (!(plain === undefined ? this.#foreign(code, before) : this.#take(plain, 0))) return
      before = code
    }
    while (this.#endsInPart()) if (!this.#join()) return
    if (this.#count === 0 || this.#push(NOWHERE, 0)) this.#sink.end()
  }

  /** Takes a character that is not of ASCII. */
  #foreign(code: number, before: number): boolean {
    if (code === DOT_ABOVE) this.#joinDot(before)
    const { codes, isAsTyped } = folded(code)
    this.#isTyped &&= isAsTyped
    if (this.#sink.isOne && !this.#isTyped && !this.#isNormal) return false
    if (this.#count > 0) this.isSure = false
    return this.#takeAll(codes, 1)
  }

  #joinDot(before: number): void {
    // The decoded text before it is not known here.
    if (this.#hasEscapes) this.isSure = false
    else if (this.#isPlain && this.#isNormal && before !== NOWHERE && before !== DOT_ABOVE)
      this.#isNormal = /[\u0307\u0130]$/.test(`${String.fromCodePoint(before)}\u0307`.normalize('NFKC'))
  }

  #takeAll(codes: readonly number[], round: number): boolean {
    for (const code of codes) if (!this.#take(code, round)) return false
    return true
  }

  /** @returns false if nothing more can be found */
  #take(code: number, round: number): boolean {
    const isSettled = this.#count === 0 && code !== PERCENT && !isPart(code)
    return isSettled ? this.#sink.take(code) : this.#push(code, round)
  }

  #keep(code: number, round: number): true {
    this.#pending[this.#count] = code
    this.#rounds[this.#count] = round
    this.#count += 1
    return true
  }

  /** Decodes what ends in an escape, and what that makes, until that is clear. */
  #push(code: number, round: number): boolean {
    const pending = this.#pending
    const behind: number[] = []
    for (let [next, latest] = [code, round]; ;) {
      if (next === PERCENT) return this.#keep(next, latest)
      const isOne = isPart(next)
      // Services decode pairs in other orders too.
      if (isOne && !this.#sink.isOne && this.#endsInPart())
        this.isLost ||= this.#rounds[this.#count - 1] !== latest
      while (this.#endsInPart() && !(isOne && this.#goesOn(next, latest))) if (!this.#join()) return false
      if (isOne) return this.#keep(next, latest)
      if (this.#count === 0) return this.#sink.take(next) && this.#takeBehind(behind)
      let start = this.#count - 1
      while (pending[start] !== PERCENT) start -= 1
      this.#keep(next, latest)
      const isLong = pending[start + 1] === SMALL_U
      const isDigit = hexOf(next) >= 0 || (isLong && this.#count === start + 2)
      if (isDigit && this.#count - start < (isLong ? 6 : 3)) return true
      const value = isDigit ? hexAtEnd(pending, this.#count, isLong ? 4 : 2) : NOWHERE
      for (let at = start; at < this.#count; at += 1) latest = Math.max(latest, this.#rounds[at] ?? 0)
      // No escape: the characters behind the percent sign are kept.
      if (value === NOWHERE && !this.#sink.isOne)
        for (let at = this.#count - 1; at > start; at -= 1) behind.push(pending[at] ?? NOWHERE)
      this.#count = start
      if (value >= 0x80 && isLong && !isPart(value)) {
        this.isSure = false
        return this.#takeAll(folded(value).codes, latest + 1)
      }
      if (value >= 0x80) this.isSure = false
      next = value < 0 ? NOWHERE : isLong || value < 0x80 ? (plainFolds[value] ?? value) : BYTE + value
      if (next === LEFT_OUT) return true
    }
  }

  #takeBehind(behind: readonly number[]): boolean {
    for (let at = behind.length - 1; at >= 0; at -= 1)
      if (!this.#sink.take(behind[at] ?? NOWHERE)) return false
    return true
  }

  /** Whether the part at the end waits on: half a surrogate pair for the other half, a byte for those decoded with it. */
  #goesOn(next: number, round: number): boolean {
    const last = this.#count - 1
    return (this.#pending[last] ?? 0) < BYTE || (next >= BYTE && (this.#rounds[last] ?? 0) >= round)
  }

  #endsInPercent(): boolean {
    return this.#count > 0 && this.#pending[this.#count - 1] === PERCENT
  }

  #endsInPart(): boolean {
    return this.#count > 0 && isPart(this.#pending[this.#count - 1] ?? 0)
  }

  /** Joins the parts at the end to characters. */
  #join(): boolean {
    const end = this.#count
    const round = this.#rounds[end - 1] ?? 0
    const isByte = (this.#pending[end - 1] ?? 0) >= BYTE
    const isSame = (part: number): boolean => isPart(part) && part >= BYTE === isByte
    while (
      isSame(this.#pending[this.#count - 1] ?? 0) &&
      (!isByte || this.#rounds[this.#count - 1] === round)
    )
      this.#count -= 1
    const text = textOfUnits(this.#pending.slice(this.#count, end))
    this.isSure = false
    const codes = codesOf(text).flatMap((code) => (isPart(code) ? [NOWHERE] : folded(code).codes))
    this.isLost ||= !this.#isPlain && !text.isWellFormed()
    if (!this.#sink.isOne && text.includes('\ufffd')) this.isLost ||= codes.some((code) => code < 0x80)
    return this.#takeAll(codes, round + 1)
  }
}
