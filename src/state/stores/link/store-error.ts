import type { DatabaseSync } from 'node:sqlite'
import type { TrustedOffset } from '../../../base/kernel/store-clock.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'

/** The store cannot be used as it is, so the service must not start (T7). The message says what an operator can do. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** A code as system errors have one: the command line then prints one line instead of a stack. */
  readonly code = 'ERR_STORE_UNFIT'
}

export interface OpenOptions {
  readonly onTrouble?: TroubleListener | undefined
  /** Milliseconds within which each verb must answer; undefined: as callers of the service need it. */
  readonly answerWithin?: number | undefined
  /** Takes what is read of the clock of a store that several nodes share. */
  readonly offset?: TrustedOffset | undefined
}

/** SQLite's primary result codes (sqlite.org/rescode.html) that the caller did not cause. */
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
const CANNOT_WRITE = 8
const READ_OR_WRITE = 10
const FULL = 13
const DAMAGED = 11
const CANNOT_OPEN = 14
const NO_DATABASE = 26
/** An extended code: the file was moved or deleted. */
const MOVED = 1032

/** The primary code is the lowest byte of an extended one. */
const LOWEST_BYTE = 0xff

const extendedCodeOf = (thrown: unknown): number | undefined =>
  thrown instanceof Error && 'errcode' in thrown && typeof thrown.errcode === 'number'
    ? thrown.errcode
    : undefined

function codeOf(thrown: unknown): number | undefined {
  const code = extendedCodeOf(thrown)
  return code === undefined ? undefined : code & LOWEST_BYTE
}

/** Why the store cannot answer, in words for the log; undefined if the error says nothing of that kind. */
export function describeTrouble(thrown: unknown): string | undefined {
  const code = codeOf(thrown)
  const known = code === undefined ? undefined : TROUBLES.get(code)
  return known === undefined ? undefined : `${known} (SQLite ${String(code)})`
}

/** Why a write was refused of a file that can be read; undefined for other errors. */
export const describeRefusal = (thrown: unknown): string | undefined =>
  [CANNOT_WRITE, FULL].includes(codeOf(thrown) ?? 0) ? describeTrouble(thrown) : undefined

export const troubleInWords = (thrown: unknown): string => describeTrouble(thrown) ?? messageOf(thrown)

/** Why a store file cannot be read: the error itself, if it says that. */
export const cannotRead = (path: string, thrown: unknown): StoreError =>
  thrown instanceof StoreError
    ? thrown
    : new StoreError(`The store ${path} cannot be read: ${troubleInWords(thrown)}`, { cause: thrown })

/** `lasting`: the files cannot be used any more. `passing`: until a statement succeeds. Undefined: another error. */
export function describeDamage(thrown: unknown): 'lasting' | 'passing' | undefined {
  const code = codeOf(thrown)
  if (code === DAMAGED || code === NO_DATABASE || extendedCodeOf(thrown) === MOVED) return 'lasting'
  return code === READ_OR_WRITE || code === CANNOT_OPEN ? 'passing' : undefined
}

export const isBusy = (thrown: unknown): boolean => codeOf(thrown) === BUSY

/** The first damage in the pages of a database, in SQLite's words on one line; undefined if there is none. */
export function quickCheck(db: DatabaseSync): string | undefined {
  const [found] = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {})
  return found === 'ok' ? undefined : String(found).replaceAll('\n', ' ')
}

/** Called with the reason when the store stops working, and with undefined when it works again. */
export type TroubleListener = (trouble: string | undefined) => void
