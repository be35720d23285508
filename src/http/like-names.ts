/**
 * Finds the names of an object's members that some service may read as wanted ones (C8.7). What names are read as tells
 * `member-names.ts`, slowly. Here a name is followed along the letters of the wanted ones, and given up at the first
 * letter that none of them has: a hostile body has thousands of names, each of which is dear to decode and to normalise.
 */
import {
  ASCII,
  BYTE,
  hexAtEnd,
  hexOf,
  isLeftOut,
  memberReadings,
  PERCENT,
  SMALL_U,
  textOf,
} from './member-names.ts'
import { caseless, SKIPPED } from './query.ts'

const [NUL, DOT, QUESTION, OPEN, CLOSE] = [0, 0x2e, 0x3f, 0x5b, 0x5d]
const DIGIT_2 = 0x32
/** Stands for what does not show: no reading has it, and no escape reaches beyond it. */
const HIDDEN = 0x20_0b
/** Stands for what no wanted reading has. */
const NOWHERE = -1
/** No reading has it, unless normalising joins it to what stands before it. */
const DOT_ABOVE = 0x3_07
const MARK = /\p{M}/u
/** Readings with these are looked for slowly: they divide names, or make other ones of them. */
const DIVIDES = /[\]?%\0]/

const codesOf = (text: string): readonly number[] => Array.from(text, (each) => each.codePointAt(0) ?? 0)

/** What a code point of ASCII leaves in a reading. */
const LEFT_OUT = -2
const plainFolds: readonly number[] = Array.from({ length: 0x80 }, (_, code) =>
  isLeftOut(code) ? LEFT_OUT : code >= 0x41 && code <= 0x5a ? code + 0x20 : code,
)

interface Fold {
  /**
   * What a code point leaves in a reading that is normalised and folded, its marks taken apart. Letters of ASCII come of
   * those alone that some reading turns into them.
   */
  readonly codes: readonly number[]
  /** Whether it leaves the same where nothing was normalised. */
  readonly isAsTyped: boolean
}

function foldOf(code: number): Fold {
  const typed = String.fromCodePoint(code)
  const codes = codesOf(typed.normalize('NFKC')).flatMap(caselessCodes)
  const isShown = (each: number): boolean => each !== HIDDEN
  return { codes, isAsTyped: String(caselessCodes(code).filter(isShown)) === String(codes.filter(isShown)) }
}

function caselessCodes(code: number): readonly number[] {
  const text = String.fromCodePoint(code)
  const plain = plainFolds[code]
  if (plain !== undefined) return plain === LEFT_OUT ? [] : [plain]
  const left = text.search(SKIPPED) === 0 ? '' : caseless(text)
  return left === '' ? [HIDDEN] : codesOf(left.normalize('NFD'))
}

const ITSELF = -1
/** Where the fold of a code point is in `folds`; 0: it was not made yet. */
const places = new Int32Array(0x11_00_00)
const folds: Fold[] = [{ codes: [], isAsTyped: true }]

function folded(code: number): Fold {
  const place = places[code] ?? 0
  const known = place > 0 ? folds[place] : place === ITSELF ? { codes: [code], isAsTyped: true } : undefined
  if (known !== undefined) return known
  const fold = foldOf(code)
  // Not kept, so that all that are unassigned take no memory.
  const isItself = code >= 0x80 && fold.codes.length === 1 && fold.codes[0] === code
  places[code] = isItself ? ITSELF : folds.push(fold) - 1
  return fold
}

/** Where one is on the way along the letters of the wanted readings. */
interface Step {
  readonly next: Map<number, Step>
  /** The reading that ends here. */
  reading: string | undefined
}

const newStep = (): Step => ({ next: new Map(), reading: undefined })

const isHighHalf = (code: number): boolean => code >= 0xd8_00 && code < 0xdc_00
const isLowHalf = (code: number): boolean => code >= 0xdc_00 && code < 0xe0_00
/** A byte of a character, or half a surrogate pair: with what follows it makes a character. */
const isPart = (code: number): boolean => code >= BYTE || isHighHalf(code) || isLowHalf(code)

/** Follows one name: up to its first bracket or dot, and as a variable, without these. */
class Walk {
  readonly found: string[] = []
  /** Whether what was found is so, and not only may be. */
  isSure = true
  /** Whether nothing is known. */
  isLost = false
  /** Whether the wanted readings are of ASCII: no mark belongs to them. */
  readonly #isPlain: boolean
  #here: Step
  #hasBegun = false
  #hasEnded = false
  #isFirstName = true
  #isVariable = true
  /** Which readings are followed still: those that are not normalised, and those that are. */
  #isTyped = true
  #isNormal = true
  /** What may become an escape, and parts of characters. */
  readonly #pending: number[] = []
  /** How often each of these was normalised: parts join those alone that were decoded with them. */
  readonly #rounds: number[] = []
  #count = 0
  #hasEscapes = false

  constructor(start: Step, isPlain: boolean) {
    this.#here = start
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
    if (this.#count === 0) this.#end()
    else this.#push(NOWHERE, 0)
  }

  /** What is not of ASCII. */
  #foreign(code: number, before: number): boolean {
    if (code === DOT_ABOVE) this.#joinDot(before)
    const { codes, isAsTyped } = folded(code)
    this.#isTyped &&= isAsTyped
    if (!this.#isTyped && !this.#isNormal) return false
    if (this.#count > 0) this.isSure = false
    return this.#takeAll(codes, 1)
  }

  #joinDot(before: number): void {
    // What was decoded before it is not known here.
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
    return isSettled ? this.#step(code) : this.#push(code, round)
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
    for (let [next, latest] = [code, round]; ;) {
      if (next === PERCENT) return this.#keep(next, latest)
      const isOne = isPart(next)
      if (isLowHalf(next) && isHighHalf(pending[this.#count - 1] ?? 0) && this.#count > 0)
        // Halves of a surrogate pair find each other later, too.
        this.#rounds[this.#count - 1] = latest = Math.max(latest, this.#rounds[this.#count - 1] ?? 0)
      while (this.#endsInPart() && !(isOne && (this.#rounds[this.#count - 1] ?? 0) >= latest))
        if (!this.#join()) return false
      if (isOne) return this.#keep(next, latest)
      if (this.#count === 0) return this.#step(next)
      let start = this.#count - 1
      while (pending[start] !== PERCENT) start -= 1
      this.#keep(next, latest)
      const isLong = pending[start + 1] === SMALL_U
      const isDigit = hexOf(next) >= 0 || (isLong && this.#count === start + 2)
      if (isDigit && this.#count - start < (isLong ? 6 : 3)) return true
      const value = isDigit ? hexAtEnd(pending, this.#count, isLong ? 4 : 2) : NOWHERE
      for (let at = start; at < this.#count; at += 1) latest = Math.max(latest, this.#rounds[at] ?? 0)
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
    const isSame = (code: number): boolean => isPart(code) && code >= BYTE === isByte
    while (isSame(this.#pending[this.#count - 1] ?? 0) && this.#rounds[this.#count - 1] === round)
      this.#count -= 1
    const text = textOf(this.#pending.slice(this.#count, end))
    this.isSure = false
    this.isLost ||= !this.#isPlain && !text.isWellFormed()
    return this.#takeAll(
      codesOf(text).flatMap((code) => (isPart(code) ? [NOWHERE] : folded(code).codes)),
      round + 1,
    )
  }

  #step(code: number): boolean {
    switch (code) {
      case HIDDEN:
        return true
      case NUL:
        // A name ends here, or goes on without it.
        if (!this.#hasEnded) this.#end()
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
    if (next === undefined) return !this.#isPlain && code !== NOWHERE && MARK.test(String.fromCodePoint(code))
    this.#hasBegun = true
    this.#here = next
    return true
  }

  #end(): void {
    if (this.#isFirstName || this.#isVariable) this.#note()
  }

  #note(): void {
    const { reading } = this.#here
    if (reading !== undefined) this.found.push(reading)
  }
}

/** Names that are looked for, in many objects of many calls. */
export class WantedNames {
  readonly #nameOf: (key: string) => string
  readonly #readings: ReadonlyMap<string, readonly string[]>
  readonly #wanted: ReadonlySet<string>
  readonly #start = newStep()
  /** Whether they are followed at all. */
  readonly #isFollowed: boolean
  /** Whether they are of ASCII: then no mark belongs to them, and what was found is so. */
  readonly #isPlain: boolean

  /** @param nameOf a key as it is compared */
  constructor(wanted: readonly string[], nameOf: (key: string) => string) {
    this.#nameOf = nameOf
    this.#readings = new Map(wanted.map((name) => [name, memberReadings(nameOf(name))]))
    this.#wanted = new Set([...this.#readings.values()].flat())
    const all = [...this.#wanted]
    this.#isFollowed = !all.some((reading) => DIVIDES.test(reading))
    this.#isPlain = all.every((reading) => ASCII.test(reading))
    for (const reading of all) this.#lead(reading)
  }

  #lead(reading: string): void {
    let here = this.#start
    for (const code of codesOf(reading).flatMap((code) => folded(code).codes)) {
      if (code === HIDDEN || MARK.test(String.fromCodePoint(code))) continue
      const next = here.next.get(code) ?? newStep()
      here.next.set(code, next)
      here = next
    }
    here.reading = reading
  }

  /** What a wanted name is read as. @throws RangeError for another one, of which nothing would be found */
  readingsOf(name: string): readonly string[] {
    const readings = this.#readings.get(name)
    if (readings === undefined) throw new RangeError('a name is looked for that is none of the wanted ones')
    return readings
  }

  /** Those wanted readings that a key has. */
  readingsIn(key: string): readonly string[] {
    const name = this.#nameOf(key)
    if (this.#isFollowed) {
      const walk = new Walk(this.#start, this.#isPlain)
      walk.follow(name)
      if (!walk.isLost && (walk.found.length === 0 || (walk.isSure && this.#isPlain))) return walk.found
    }
    return memberReadings(name).filter((reading) => this.#wanted.has(reading))
  }
}

/**
 * The names of objects of one call that are like wanted ones. Each object is read once, however many names are looked for in
 * it, unless it is changed by others.
 */
export class LikeNames {
  readonly #wanted: WantedNames
  readonly #objects = new Map<object, Map<string, Set<string>>>()

  constructor(wanted: WantedNames) {
    this.#wanted = wanted
  }

  /** The keys of an object that may be read as a name, in their order. */
  like(object: Readonly<Record<string, unknown>>, name: string): readonly string[] {
    const keys = this.#keysOf(object)
    const found = new Set<string>()
    if (Object.hasOwn(object, name)) found.add(name)
    for (const reading of this.#wanted.readingsOf(name))
      for (const key of keys.get(reading) ?? []) if (Object.hasOwn(object, key)) found.add(key)
    return [...found]
  }

  /** To be told of a key that an object gets. */
  add(object: Readonly<Record<string, unknown>>, key: string): void {
    this.#note(this.#keysOf(object), key)
  }

  #keysOf(object: Readonly<Record<string, unknown>>): Map<string, Set<string>> {
    const known = this.#objects.get(object)
    if (known !== undefined) return known
    const keys = new Map<string, Set<string>>()
    for (const key in object) this.#note(keys, key)
    this.#objects.set(object, keys)
    return keys
  }

  #note(keys: Map<string, Set<string>>, key: string): void {
    for (const reading of this.#wanted.readingsIn(key)) {
      const same = keys.get(reading)
      if (same === undefined) keys.set(reading, new Set([key]))
      else same.add(key)
    }
  }
}
