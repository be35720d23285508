import { Fault } from '../kernel/faults.ts'

const LONGEST = 60

/**
 * A name that the client sent, fit to be told back in a fault's `say`: cut, and without characters that a log line,
 * an XML document or a terminal would take for anything but text (controls, direction marks, non-characters).
 */
export function printable(name: string): string {
  const characters = Array.from(name.slice(0, 2 * (LONGEST + 1)))
  const cut = characters.length > LONGEST ? [...characters.slice(0, LONGEST - 1), '…'] : characters
  return cut.join('').replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?')
}

/** The same between double quotes, for use within a sentence. */
export const quoted = (name: string): string => `"${printable(name)}"`

// Strict about what is UTF-8 (no overlong forms, no surrogates), and leaves out one leading BOM (C7.4).
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** A body's text. Throws Fault `body_malformed` if the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes)
  } catch (cause) {
    throw new Fault('body_malformed', { say: 'It is not valid UTF-8.', cause })
  }
}
