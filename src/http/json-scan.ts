import { Buffer } from 'node:buffer'

// The grammar of RFC 8259, UTF-8 included (RFC 3629 §4), as a table: for each state and class of byte the next state, or
// what to do. Two lookups a byte, whatever the document.

/** Where a scan is. Those that `ENDS` lists may stand at the end of a document. */
const STATES = [
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

const VALUE = numberOf('value')
const LIST = numberOf('list')
const OBJECT = numberOf('object')
const KEY = numberOf('key')
const COLON = numberOf('colon')
const AFTER = numberOf('after')
const STRING = numberOf('string')
const BROKEN = numberOf('broken')
/** From here on: what to do, and no state. */
const FIRST_ACT = numberOf('openObject')
const OPEN_OBJECT = FIRST_ACT
const OPEN_LIST = numberOf('openList')
const CLOSE_OBJECT = numberOf('closeObject')
const CLOSE_LIST = numberOf('closeList')
const OPEN_TEXT = numberOf('openText')
const OPEN_KEY = numberOf('openKey')
const CLOSE_TEXT = numberOf('closeText')
const COMMA = numberOf('comma')

const NUMBERS_END: readonly State[] = ['zero', 'whole', 'fraction', 'exponent']
const ENDS: ReadonlySet<number> = new Set((['after', ...NUMBERS_END] as const).map(numberOf))

/** By `state * 256 + byte`. */
const NEXT = new Uint8Array(STATES.length * 256)

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

/** What is no JSON, or not of the shape that was promised. `message` says where, in bytes from 0. */
export class NotJson extends Error {
  override readonly name = 'NotJson'
}

/** Objects and lists within each other. */
const MOST_DEPTH = 10_000
/** Bytes of a key that are looked at: no member that counts has a longer name, however it is escaped. */
const MOST_KEY = 64

/** What an envelope's members must be (C2.1). */
const MEMBERS: Readonly<Record<string, number>> = {
  Errors: OPEN_LIST,
  Data: OPEN_OBJECT,
}

/**
 * Whether bytes are one JSON document in UTF-8 (RFC 8259), found out piece by piece as they pass, in constant memory. With
 * `envelope` its shape too, as far as that can be known without holding it: an object whose `Errors` is a list of objects
 * and whose `Data` is an object, where the last of a repeated member counts, as in JSON.parse. No byte order mark.
 */
export class JsonScan {
  readonly #envelope: boolean
  #state = VALUE
  #depth = 0
  /** By depth: what is open there, as the act that opened it. */
  #open = new Uint8Array(64)
  #textIsKey = false
  /** Where the current key begins in the current piece; -1 if none of interest is being read. */
  #keyFrom = -1
  /** What came of it with earlier pieces. */
  #keyBefore = ''
  /** The member of the envelope that is being read. */
  #member = ''
  readonly #wellFormed = new Set<string>()
  /** Whether the current item of `Errors` is an object. */
  #isEntry = false
  #passed = 0

  constructor(envelope = false) {
    this.#envelope = envelope
  }

  /** @throws NotJson as soon as it is known */
  write(bytes: Uint8Array): void {
    let state = this.#state
    for (let at = 0; at < bytes.length; at++) {
      const next = NEXT[state * 256 + (bytes[at] ?? 0)] ?? BROKEN
      if (next < FIRST_ACT && next !== BROKEN) state = next
      else state = this.#act(next, state, bytes, at)
    }
    this.#state = state
    if (this.#keyFrom >= 0) this.#keepKey(bytes, bytes.length)
    if (this.#keyFrom >= 0) this.#keyFrom = 0
    this.#passed += bytes.length
  }

  /** @throws NotJson if the document is not whole */
  end(): void {
    if (this.#depth > 0 || !ENDS.has(this.#state)) throw new NotJson(`it ends at byte ${this.#passed}`)
    if (this.#envelope && this.#wellFormed.size < Object.keys(MEMBERS).length)
      throw new NotJson('it is no envelope: its Errors is no list, or its Data no object')
  }

  #act(act: number, state: number, bytes: Uint8Array, at: number): number {
    switch (act) {
      case OPEN_OBJECT:
      case OPEN_LIST:
        return this.#enter(act, at)
      case CLOSE_OBJECT:
        return this.#leave(OPEN_OBJECT, state, at)
      case CLOSE_LIST:
        return this.#leave(OPEN_LIST, state, at)
      case COMMA:
        return this.#comma(at)
      case OPEN_TEXT:
        this.#textIsKey = false
        if (this.#envelope && this.#depth === 0) this.#fail(at)
        return STRING
      case OPEN_KEY:
        this.#textIsKey = true
        if (this.#envelope && this.#depth === 1) {
          this.#keyFrom = at + 1
          this.#keyBefore = ''
        }
        return STRING
      case CLOSE_TEXT:
        if (!this.#textIsKey) return AFTER
        if (this.#keyFrom >= 0) this.#endKey(bytes, at)
        return COLON
      default:
        return this.#fail(at)
    }
  }

  #enter(act: number, at: number): number {
    if (this.#envelope) this.#checkOpening(act, at)
    if (this.#depth === MOST_DEPTH) this.#fail(at, `is nested more than ${MOST_DEPTH} levels deep`)
    if (this.#depth === this.#open.length) this.#grow()
    this.#open[this.#depth++] = act
    return act === OPEN_LIST ? LIST : OBJECT
  }

  #checkOpening(act: number, at: number): void {
    if (this.#depth === 0 && act !== OPEN_OBJECT) this.#fail(at, 'is no envelope')
    if (this.#depth === 1 && MEMBERS[this.#member] === act) {
      this.#wellFormed.add(this.#member)
      this.#isEntry = false
    }
    if (this.#depth === 2) this.#isEntry = act === OPEN_OBJECT
  }

  #leave(opened: number, state: number, at: number): number {
    if (this.#depth === 0 || this.#open[--this.#depth] !== opened) this.#fail(at)
    if (state !== LIST) this.#checkEntry(this.#depth + 1)
    return AFTER
  }

  #comma(at: number): number {
    if (this.#depth === 0) this.#fail(at)
    this.#checkEntry(this.#depth)
    return this.#open[this.#depth - 1] === OPEN_LIST ? VALUE : KEY
  }

  /** At the end of an item of `Errors`: it must have been an object. */
  #checkEntry(depth: number): void {
    if (!this.#envelope || depth !== 2 || this.#member !== 'Errors') return
    if (!this.#isEntry) this.#wellFormed.delete('Errors')
    this.#isEntry = false
  }

  #endKey(bytes: Uint8Array, at: number): void {
    this.#keepKey(bytes, at)
    this.#keyFrom = -1
    const key = this.#keyBefore
    this.#member = key.includes('\\') ? unescaped(key) : key
    this.#wellFormed.delete(this.#member)
  }

  #keepKey(bytes: Uint8Array, end: number): void {
    const room = MOST_KEY - this.#keyBefore.length
    const from = this.#keyFrom
    this.#keyBefore += Buffer.from(
      bytes.buffer,
      bytes.byteOffset + from,
      Math.min(end - from, room),
    ).toString('latin1')
  }

  #grow(): void {
    const grown = new Uint8Array(this.#open.length * 4)
    grown.set(this.#open)
    this.#open = grown
  }

  #fail(at: number, why = 'is no JSON'): never {
    throw new NotJson(`it ${why} at byte ${this.#passed + at}`)
  }
}

/** A key that was cut may end within an escape: then it is none of those that count. */
function unescaped(key: string): string {
  try {
    return JSON.parse(`"${key}"`) as string
  } catch {
    return ''
  }
}
