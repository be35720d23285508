import { Fault } from '../../kernel/faults.ts'
import type { ItemNames } from './key-sequences.ts'

/** A text takes longer than its rules allow. */
export class SlowDocument extends Error {
  override readonly name = 'SlowDocument'
}

/** The document that a JSON text becomes. */
export type Layout =
  /** A document with the value as its root, of this name. */
  | { readonly kind: 'document'; readonly root: string }
  /** An envelope with the value as its `Data` (C8.6). */
  | { readonly kind: 'payload' }
  /** An envelope, of a text that is one, as `checkJson` has found. */
  | { readonly kind: 'envelope' }

export interface WriterRules {
  readonly layout: Layout
  readonly items: ItemNames
  /** Objects and arrays within each other. */
  readonly depth: number
  /** Values of any kind, objects and arrays included. */
  readonly nodes: number
  /** Bytes of XML. */
  readonly most: number
  /** Beyond these it throws SlowDocument. Undefined: it may take as long as it takes. */
  readonly quick?: QuickBounds | undefined
}

/** Bounds of a text that takes a few milliseconds. */
export interface QuickBounds {
  /** Keys that are in no known sequence. Each takes up to a microsecond; a long one that is escaped counts as several. */
  readonly newKeys: number
  /** Bytes of XML. It has more only where names of items are long. They are counted when the output grows. */
  readonly bytes: number
}

export const tooLong = (most: number): Fault =>
  new Fault('answer_too_large', { detail: `converted, it has more than ${most} bytes` })

export const unconvertible = (detail: string): Fault => new Fault('answer_unconvertible', { detail })
