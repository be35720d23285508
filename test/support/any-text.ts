import fc from 'fast-check'

/** All code points but the halves of a surrogate pair, as they are counted here. */
const BEFORE_HALVES = 0xd800
const HALVES = 0x800
const LAST = 0x10ffff - HALVES

const unit = fc.integer({ min: 0, max: LAST }).map(
  (at) => String.fromCodePoint(at < BEFORE_HALVES ? at : at + HALVES),
  (given) => {
    const code = typeof given === 'string' ? (given.codePointAt(0) ?? -1) : -1
    if (code < 0 || String.fromCodePoint(code) !== given || !given.isWellFormed())
      throw new Error('no such unit')
    return code < BEFORE_HALVES ? code : code - HALVES
  },
)

/** Well-formed text of any code points: the same as by the unit `binary` of fast-check, whose table takes seconds to make. */
export const anyText = (bounds: { readonly maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ ...bounds, unit })
