/** What a person probably meant: for unknown keys, names and verbs. */

const cell = (row: readonly number[], index: number): number => row[index] ?? 0

/** Edits (insert, delete, replace, swap neighbours) that turn `a` into `b`. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const edits = Math.min(cell(last, j) + 1, cell(row, j - 1) + 1, cell(last, j - 1) + same)
      row.push(swapped ? Math.min(edits, cell(beforeLast, j - 2) + 1) : edits)
    }
    beforeLast = last
    last = row
  }
  return cell(last, b.length)
}

const MAX_LENGTH = 64

/** The known word nearest to `given`, if it is near: at most a third of its letters differ, case aside. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  if (given.length > MAX_LENGTH) return undefined
  const limit = Math.max(1, Math.floor(given.length / 3))
  let best: { word: string; edits: number } | undefined
  for (const word of known) {
    if (Math.abs(word.length - given.length) > limit) continue
    const edits = distance(given.toLowerCase(), word.toLowerCase())
    if (edits <= limit && edits < (best?.edits ?? Infinity)) best = { word, edits }
  }
  return best?.word
}

/** `did you mean "listen"?`, or undefined if nothing known is near. */
export function didYouMean(given: string, known: Iterable<string>): string | undefined {
  const word = nearest(given, known)
  return word === undefined ? undefined : `did you mean "${word}"?`
}
