import { Fault } from '../kernel/faults.ts'

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
