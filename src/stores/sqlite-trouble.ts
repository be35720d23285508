/** SQLite's primary result codes (sqlite.org/rescode.html) for which nobody who asks is to blame. */
const TROUBLES: ReadonlyMap<number, string> = new Map([
  [5, 'another process holds its lock'],
  [6, 'a table is locked'],
  [7, 'out of memory'],
  [8, 'it cannot be written'],
  [10, 'the disk reports an error'],
  [11, 'the file is damaged'],
  [13, 'the disk is full, or the store has reached its maxSize'],
  [14, 'the file cannot be opened'],
  [26, 'the file is no database'],
])

const BUSY = 5
const LOWEST_BYTE = 0xff

const codeOf = (thrown: unknown): number | undefined =>
  thrown instanceof Error && 'errcode' in thrown && typeof thrown.errcode === 'number'
    ? thrown.errcode & LOWEST_BYTE
    : undefined

/** What keeps the store from answering, in words for the log; undefined if the error is none of that kind. */
export function describeTrouble(thrown: unknown): string | undefined {
  const code = codeOf(thrown)
  const known = code === undefined ? undefined : TROUBLES.get(code)
  return known === undefined ? undefined : `${known} (SQLite ${String(code)})`
}

export const isBusy = (thrown: unknown): boolean => codeOf(thrown) === BUSY
