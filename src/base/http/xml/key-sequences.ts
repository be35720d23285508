import { escapeName } from './syntax.ts'
import { type Utf8Text, utf8 } from './utf8-text.ts'

/** The element name of an array's items, by the name of the array's member; any other array's are `Item`. */
export type ItemNames = Readonly<Record<string, string>>

/** The name of the items of an array that has no other. */
export const ITEM = utf8('Item')

/** The name of the items of a member that is an array. */
export function itemNameOf(key: string, items: ItemNames): Utf8Text {
  const name = Object.hasOwn(items, key) ? items[key] : undefined
  return name === undefined ? ITEM : utf8(escapeName(name))
}

/** A key, the name of its element, and the name of the items in it if it is an array. */
export interface NamedKey {
  readonly key: string
  readonly name: Utf8Text
  readonly itemName: Utf8Text
}

/**
 * `sequences`: of one action. `refused`: keys of one action that found no place. `keys`: in one sequence. `longer`: sequences that
 * are a given one and one key more. `bytes`: of one key, with its quote and colon.
 */
const MOST = { sequences: 512, refused: 4096, keys: 64, longer: 8, bytes: 64 }

/**
 * The keys of an object from the first one on, in their order. Most objects have keys that others had before them. To read those
 * is to go from sequence to sequence, and to compare bytes. No key is in a sequence twice, so that nothing has to be looked up.
 */
export class KeySequence implements NamedKey {
  /** The last key of the sequence. */
  readonly key: string
  readonly name: Utf8Text
  readonly itemName: Utf8Text
  /** The last key as it was read, with what stands behind it up to the value: a quote and a colon. */
  private readonly spelling: Uint8Array
  /** The bytes of this spelling. */
  readonly length: number
  private readonly shorter: KeySequence | undefined
  /** How many keys it has. */
  private readonly count: number
  /** How many sequences its action has, and how many keys found no place. All share this object. */
  private readonly total: { sequences: number; refused: number }
  private readonly longer: KeySequence[] = []
  private latest: KeySequence | undefined

  constructor({ key, itemName }: Omit<NamedKey, 'name'>, spelling: Uint8Array, shorter?: KeySequence) {
    this.key = key
    this.name = utf8(escapeName(key))
    this.itemName = itemName
    this.spelling = spelling
    this.length = spelling.length
    this.shorter = shorter
    this.count = shorter === undefined ? 0 : shorter.count + 1
    this.total = shorter?.total ?? { sequences: 0, refused: 0 }
  }

  /** Whether its action has too many sequences, or too many keys found no place in them. */
  get isSpent(): boolean {
    return this.total.sequences >= MOST.sequences || this.total.refused >= MOST.refused
  }

  /** The sequence with the key that begins at `at` besides. Undefined: it is not known. */
  next(source: Buffer, at: number): KeySequence | undefined {
    const { latest } = this
    if (latest === undefined || latest.endsAt(source, at)) return latest
    for (const other of this.longer) if (other.endsAt(source, at)) return (this.latest = other)
    return undefined
  }

  private endsAt(source: Buffer, at: number): boolean {
    for (let index = 0; index < this.length; index++)
      if (source[at + index] !== this.spelling[index]) return false
    return true
  }

  /** Adds the sequence with one key more. Undefined: a number would be greater than `MOST`. */
  add(key: NamedKey, spelling: Uint8Array): KeySequence | undefined {
    const isTooLong = this.count >= MOST.keys || spelling.length > MOST.bytes
    if (isTooLong || this.longer.length >= MOST.longer || this.total.sequences >= MOST.sequences) {
      this.total.refused++
      return undefined
    }
    this.total.sequences++
    this.latest = new KeySequence(key, new Uint8Array(spelling), this)
    this.longer.push(this.latest)
    return this.latest
  }

  keys(): Set<string> {
    return this.shorter === undefined ? new Set() : this.shorter.keys().add(this.key)
  }
}

const emptySequences = new WeakMap<ItemNames, KeySequence>()

/** The sequence without a key, of the action that has these names of items. Where they are spent, the next document begins anew. */
export function emptySequenceOf(items: ItemNames): KeySequence {
  const found = emptySequences.get(items)
  if (found !== undefined && !found.isSpent) return found
  const made = new KeySequence({ key: '', itemName: ITEM }, new Uint8Array())
  emptySequences.set(items, made)
  return made
}
