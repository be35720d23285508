/**
 * The grammar of RFC 8259, UTF-8 included (RFC 3629 §4), as a table: for each state and class of byte the next state, or
 * what to do. Two lookups a byte, whatever the document.
 */

/** Where a scan is. Those that `ENDS` lists may stand at the end of a document. */
export const STATES = [
  ...['broken', 'value', 'list', 'object', 'key', 'colon', 'after'],
  ...['string', 'escape', 'hex1', 'hex2', 'hex3', 'hex4'],
  ...['more1', 'more2', 'more3', 'afterE0', 'afterED', 'afterF0', 'afterF4'],
  ...['minus', 'zero', 'whole', 'point', 'fraction', 'e', 'sign', 'exponent'],
  ...['t', 'tr', 'tru', 'f', 'fa', 'fal', 'fals', 'n', 'nu', 'nul'],
  // What to do, in place of a state: these change the depth or depend on it.
  ...['openObject', 'openList', 'closeObject', 'closeList', 'openText', 'openKey', 'closeText', 'comma'],
] as const
type State = (typeof STATES)[number]

const numberOf = (state: State): number => STATES.indexOf(state)

export const VALUE = numberOf('value')
export const LIST = numberOf('list')
export const OBJECT = numberOf('object')
export const KEY = numberOf('key')
export const COLON = numberOf('colon')
export const AFTER = numberOf('after')
export const STRING = numberOf('string')
export const BROKEN = numberOf('broken')
/** The first of what is no state, but something to do. */
export const FIRST_ACT = numberOf('openObject')
export const OPEN_OBJECT = FIRST_ACT
export const OPEN_LIST = numberOf('openList')
export const CLOSE_OBJECT = numberOf('closeObject')
export const CLOSE_LIST = numberOf('closeList')
export const OPEN_TEXT = numberOf('openText')
export const OPEN_KEY = numberOf('openKey')
export const CLOSE_TEXT = numberOf('closeText')
export const COMMA = numberOf('comma')

const NUMBERS_END: readonly State[] = ['zero', 'whole', 'fraction', 'exponent']
/** A document may end in these, outside of everything. */
export const ENDS: ReadonlySet<number> = new Set((['after', ...NUMBERS_END] as const).map(numberOf))

/** By `state * 256 + byte`. */
export const NEXT = new Uint8Array(STATES.length * 256)

type Bytes = string | readonly [first: number, last: number]

function on(states: State | readonly State[], bytes: Bytes, next: State): void {
  const [first, last] = typeof bytes === 'string' ? [0, -1] : bytes
  const listed = typeof bytes === 'string' ? [...Buffer.from(bytes)] : []
  const all = [...listed, ...Array.from({ length: last - first + 1 }, (_, at) => first + at)]
  for (const state of typeof states === 'string' ? [states] : states)
    for (const byte of all) NEXT[numberOf(state) * 256 + byte] = numberOf(next)
}

const WHITE = ' \t\n\r'
const HEX = '0123456789abcdefABCDEF'
const CONTINUATION = [0x80, 0xbf] as const

for (const state of ['value', 'list', 'object', 'key', 'colon', 'after'] as const) on(state, WHITE, state)

const beginValue = ['value', 'list'] as const
on(beginValue, '{', 'openObject')
on(beginValue, '[', 'openList')
on(beginValue, '"', 'openText')
on(beginValue, '-', 'minus')
on(beginValue, '0', 'zero')
on(beginValue, '123456789', 'whole')
for (const first of ['t', 'f', 'n'] as const) on(beginValue, first, first)

on('object', '"', 'openKey')
on('key', '"', 'openKey')
on('colon', ':', 'value')
on(['object', 'after', ...NUMBERS_END], '}', 'closeObject')
on(['list', 'after', ...NUMBERS_END], ']', 'closeList')
on(['after', ...NUMBERS_END], ',', 'comma')

on('string', [0x20, 0x7f], 'string')
on('string', '"', 'closeText')
on('string', '\\', 'escape')
on('escape', '"\\/bfnrt', 'string')
on('escape', 'u', 'hex1')
on('hex1', HEX, 'hex2')
on('hex2', HEX, 'hex3')
on('hex3', HEX, 'hex4')
on('hex4', HEX, 'string')

on('string', [0xc2, 0xdf], 'more1')
on('string', [0xe0, 0xe0], 'afterE0')
on('string', [0xe1, 0xef], 'more2')
on('string', [0xed, 0xed], 'afterED')
on('string', [0xf0, 0xf0], 'afterF0')
on('string', [0xf1, 0xf3], 'more3')
on('string', [0xf4, 0xf4], 'afterF4')
on('more1', CONTINUATION, 'string')
on('more2', CONTINUATION, 'more1')
on('more3', CONTINUATION, 'more2')
on('afterE0', [0xa0, 0xbf], 'more1')
on('afterED', [0x80, 0x9f], 'more1')
on('afterF0', [0x90, 0xbf], 'more2')
on('afterF4', [0x80, 0x8f], 'more2')

on('minus', '0', 'zero')
on('minus', '123456789', 'whole')
on('whole', '0123456789', 'whole')
on(['zero', 'whole'], '.', 'point')
on(['point', 'fraction'], '0123456789', 'fraction')
on(['zero', 'whole', 'fraction'], 'eE', 'e')
on('e', '+-', 'sign')
on(['e', 'sign', 'exponent'], '0123456789', 'exponent')
on(NUMBERS_END, WHITE, 'after')

for (const word of ['true', 'false', 'null'])
  for (let at = 1; at < word.length; at++)
    on(
      word.slice(0, at) as State,
      word.charAt(at),
      at === word.length - 1 ? 'after' : (word.slice(0, at + 1) as State),
    )
