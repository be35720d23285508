/** Reads anchors (C12.4.5): a file of them, or a log that holds them among other lines. */
import { readFileSync } from 'node:fs'
import { ANCHOR_EVENT, type Anchor } from '../anchors.ts'

/** An anchor, and where it stands. */
export interface AnchorAt extends Anchor {
  readonly file: string
  readonly at: number
}

const isAnchor = (value: unknown): value is Anchor => {
  const { line, signed, hash, signature } = value as Partial<Record<keyof Anchor, unknown>>
  return (
    Number.isSafeInteger(line) &&
    typeof signed === 'string' &&
    typeof hash === 'string' &&
    typeof signature === 'string'
  )
}

/** Every anchor of a file. Lines that are none are passed over. Throws the system's error if the file cannot be read. */
export function readAnchors(file: string): readonly AnchorAt[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((text, at) => {
    const anchor = anchorIn(text)
    return anchor === undefined ? [] : [{ ...anchor, file, at: at + 1 }]
  })
}

/** A log may put a time or a name before each line. */
function anchorIn(text: string): Anchor | undefined {
  const start = text.indexOf('{')
  if (start === -1 || !text.includes('"signature"')) return undefined
  try {
    const value = JSON.parse(text.slice(start)) as { readonly event?: unknown } | null
    if (value === null || typeof value !== 'object') return undefined
    const { event } = value
    return (event === undefined || event === ANCHOR_EVENT) && isAnchor(value) ? value : undefined
  } catch {
    return undefined
  }
}
