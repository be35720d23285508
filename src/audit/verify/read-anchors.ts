/** Reads anchors (C12.4.5): a file of them, or a log that holds them among other lines. */
import { accessSync } from 'node:fs'
import { ANCHOR_EVENT, type Anchor } from '../anchors.ts'
import { chunkBuffer, chunksOf, eachLine } from '../find/chunks.ts'

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

/** Every anchor of a file. Lines that are none are passed over; a log of months fits no string. Throws the system's error if the file cannot be read. */
export function readAnchors(file: string): readonly AnchorAt[] {
  accessSync(file)
  const anchors: AnchorAt[] = []
  let at = 0
  for (const { bytes } of chunksOf(file, chunkBuffer(), 'open'))
    eachLine(bytes, undefined, (start, end) => {
      at += 1
      const line = bytes.subarray(start, end)
      const anchor = line.includes(SIGNATURE) ? anchorIn(line.toString()) : undefined
      if (anchor !== undefined) anchors.push({ ...anchor, file, at })
    })
  return anchors
}

const SIGNATURE = '"signature"'

/** A log may put a time or a name before each line. */
function anchorIn(text: string): Anchor | undefined {
  const start = text.indexOf('{')
  if (start === -1) return undefined
  try {
    const value = JSON.parse(text.slice(start)) as { readonly event?: unknown } | null
    if (value === null || typeof value !== 'object') return undefined
    const { event } = value
    return (event === undefined || event === ANCHOR_EVENT) && isAnchor(value) ? value : undefined
  } catch {
    return undefined
  }
}
