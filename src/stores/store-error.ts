/** The store cannot be used as it is: the service must not start (T7). The message tells an operator what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** As system errors have one: whoever starts the service tells such errors in one line, without a stack. */
  readonly code = 'ERR_STORE_UNFIT'
}

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

/** That its file was moved or deleted, of the extended codes. */
const MOVED = 1032
const READ_OR_WRITE = 10
const CANNOT_OPEN = 14
const DAMAGED = 11
const NO_DATABASE = 26

const extendedCodeOf = (thrown: unknown): number | undefined =>
  thrown instanceof Error && 'errcode' in thrown && typeof thrown.errcode === 'number'
    ? thrown.errcode
    : undefined

function codeOf(thrown: unknown): number | undefined {
  const code = extendedCodeOf(thrown)
  return code === undefined ? undefined : code & LOWEST_BYTE
}

/** What keeps the store from answering, in words for the log; undefined if the error is none of that kind. */
export function describeTrouble(thrown: unknown): string | undefined {
  const code = codeOf(thrown)
  const known = code === undefined ? undefined : TROUBLES.get(code)
  return known === undefined ? undefined : `${known} (SQLite ${String(code)})`
}

/**
 * Whether an error tells that the store's files are not fit to be used: for good (`lasting`), or as long as it comes
 * again (`passing`). Undefined of every other error.
 */
export function describeDamage(thrown: unknown): 'lasting' | 'passing' | undefined {
  const code = codeOf(thrown)
  if (code === DAMAGED || code === NO_DATABASE || extendedCodeOf(thrown) === MOVED) return 'lasting'
  return code === READ_OR_WRITE || code === CANNOT_OPEN ? 'passing' : undefined
}

export const isBusy = (thrown: unknown): boolean => codeOf(thrown) === BUSY
