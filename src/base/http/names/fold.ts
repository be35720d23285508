/**
 * Folds characters of names for comparing them (C8.7): normalised, without regard to case, and without what does not show.
 * `ﷺ` becomes 18 letters, `Ｃ` a `c`, a zero-width space nothing.
 */

/** White space, and what does not show: parsers and people skip it. */
export const SKIPPED = /[\s\p{Cc}\p{Cf}]/gu

/**
 * Both ways, because a few letters have a case in one direction only. Of the Turkish İ the dot stays behind: where a service's
 * machine is Turkish, it is an i.
 */
export const caseless = (text: string): string => text.toUpperCase().toLowerCase().replaceAll('\u0307', '')

/** White space, controls and joints of ASCII: no reading has them. A NUL ends a name. */
export const isLeftOut = (unit: number): boolean =>
  unit !== 0 && (unit <= 0x20 || unit === 0x7f || unit === 0x2d || unit === 0x5f || unit === 0x2b)

/** Stands for characters that do not show: no reading has them, and no escape reaches beyond them. */
export const HIDDEN = 0x20_0b

export const codesOf = (text: string): readonly number[] =>
  Array.from(text, (each) => each.codePointAt(0) ?? 0)

/** Stands for a character of ASCII that no reading has. */
export const LEFT_OUT = -2
/** The folds of ASCII, by code point. */
export const plainFolds: readonly number[] = Array.from({ length: 0x80 }, (_, code) =>
  isLeftOut(code) ? LEFT_OUT : code >= 0x41 && code <= 0x5a ? code + 0x20 : code,
)

interface Fold {
  /**
   * The code points that stand for it after folding, with letters and their marks apart.
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

export function folded(code: number): Fold {
  const place = places[code] ?? 0
  const known = place > 0 ? folds[place] : place === ITSELF ? { codes: [code], isAsTyped: true } : undefined
  if (known !== undefined) return known
  const fold = foldOf(code)
  // Not kept, so that all that are unassigned take no memory.
  const isItself = code >= 0x80 && fold.codes.length === 1 && fold.codes[0] === code
  places[code] = isItself ? ITSELF : folds.push(fold) - 1
  return fold
}
