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
