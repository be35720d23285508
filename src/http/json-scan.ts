import * as table from './json-scan-table.ts'

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
  Errors: table.OPEN_LIST,
  Data: table.OPEN_OBJECT,
}

/**
 * Whether bytes are one JSON document in UTF-8 (RFC 8259), told piece by piece as they pass, in constant memory. With
 * `envelope` its shape too, as far as that can be told without holding it: an object whose `Errors` is a list of objects
 * and whose `Data` is an object, where the last of a repeated member counts, as in JSON.parse. No byte order mark.
 */
export class JsonScan {
  readonly #envelope: boolean
  #state = table.VALUE
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

  /** @throws NotJson as soon as it can be told */
  write(bytes: Uint8Array): void {
    const { NEXT, FIRST_ACT, BROKEN } = table
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
    if (this.#depth > 0 || !table.ENDS.has(this.#state)) throw new NotJson(`it ends at byte ${this.#passed}`)
    if (this.#envelope && this.#wellFormed.size < Object.keys(MEMBERS).length)
      throw new NotJson('it is no envelope: its Errors is no list, or its Data no object')
  }

  #act(act: number, state: number, bytes: Uint8Array, at: number): number {
    switch (act) {
      case table.OPEN_OBJECT:
      case table.OPEN_LIST:
        return this.#enter(act, at)
      case table.CLOSE_OBJECT:
        return this.#leave(table.OPEN_OBJECT, state, at)
      case table.CLOSE_LIST:
        return this.#leave(table.OPEN_LIST, state, at)
      case table.COMMA:
        return this.#comma(at)
      case table.OPEN_TEXT:
        this.#textIsKey = false
        if (this.#envelope && this.#depth === 0) this.#fail(at)
        return table.STRING
      case table.OPEN_KEY:
        this.#textIsKey = true
        if (this.#envelope && this.#depth === 1) {
          this.#keyFrom = at + 1
          this.#keyBefore = ''
        }
        return table.STRING
      case table.CLOSE_TEXT:
        if (!this.#textIsKey) return table.AFTER
        if (this.#keyFrom >= 0) this.#endKey(bytes, at)
        return table.COLON
      default:
        return this.#fail(at)
    }
  }

  #enter(act: number, at: number): number {
    if (this.#envelope) this.#checkOpening(act, at)
    if (this.#depth === MOST_DEPTH) this.#fail(at, `is nested more than ${MOST_DEPTH} levels deep`)
    if (this.#depth === this.#open.length) this.#grow()
    this.#open[this.#depth++] = act
    return act === table.OPEN_LIST ? table.LIST : table.OBJECT
  }

  #checkOpening(act: number, at: number): void {
    if (this.#depth === 0 && act !== table.OPEN_OBJECT) this.#fail(at, 'is no envelope')
    if (this.#depth === 1 && MEMBERS[this.#member] === act) {
      this.#wellFormed.add(this.#member)
      this.#isEntry = false
    }
    if (this.#depth === 2) this.#isEntry = act === table.OPEN_OBJECT
  }

  #leave(opened: number, state: number, at: number): number {
    if (this.#depth === 0 || this.#open[--this.#depth] !== opened) this.#fail(at)
    if (state !== table.LIST) this.#checkEntry(this.#depth + 1)
    return table.AFTER
  }

  #comma(at: number): number {
    if (this.#depth === 0) this.#fail(at)
    this.#checkEntry(this.#depth)
    return this.#open[this.#depth - 1] === table.OPEN_LIST ? table.VALUE : table.KEY
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
