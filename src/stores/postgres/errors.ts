/** What an error of Postgres, or of the way to it, means for a verb. */
import { messageOf, reasonInWords } from '../../kernel/thrown.ts'

/** An error with a SQLSTATE code, which Postgres itself has sent. `severity` tells it from a system error. */
interface ServerError extends Error {
  readonly code: string
  readonly severity: string
}

const isServerError = (thrown: unknown): thrown is ServerError =>
  thrown instanceof Error && 'severity' in thrown && 'code' in thrown && typeof thrown.code === 'string'

/** The SQLSTATE; undefined if Postgres has sent none: the connection failed, or nothing came in time. */
export const stateOf = (thrown: unknown): string | undefined =>
  isServerError(thrown) ? thrown.code : undefined

const beginsWithOneOf = (state: string, beginnings: readonly string[]): boolean =>
  beginnings.some((beginning) => state.startsWith(beginning))

/** A transaction that was in the way of another one. The same statement may succeed at once. */
const IN_THE_WAY = ['40001', '40P01']
/** The connection is lost, the server stops or starts, or it only reads (a standby). */
const SERVER_GONE = ['08', '57P', '25006']
/** What an operator must solve: rights, limits, a missing table or database, a full disk, a broken server. */
const OUT_OF_ORDER = ['28', '3D', '3F', '42501', '42P01', '53', '55', '57', '58', 'XX']

/** Whether the statement may be sent again, with the same attempt id. */
export function isWorthAnotherTry(thrown: unknown): boolean {
  const state = stateOf(thrown)
  return state === undefined || beginsWithOneOf(state, IN_THE_WAY) || beginsWithOneOf(state, SERVER_GONE)
}

/** Whether the database could not do its work, so that its state is in question; else the statement itself is wrong. */
export function isUnavailable(thrown: unknown): boolean {
  const state = stateOf(thrown)
  return isWorthAnotherTry(thrown) || (state !== undefined && beginsWithOneOf(state, OUT_OF_ORDER))
}

/** Whether the database answered, and only another transaction was in the way. */
export const wasInTheWay = (thrown: unknown): boolean => IN_THE_WAY.includes(stateOf(thrown) ?? '')

/** Whether the connection must not be used again. */
export function hasLostConnection(thrown: unknown): boolean {
  const state = stateOf(thrown)
  return state === undefined || beginsWithOneOf(state, SERVER_GONE)
}

/** In words for the log. Postgres' messages name no secret; the detail, which may hold values, is left out. */
export function reasonOf(thrown: unknown): string {
  const state = stateOf(thrown)
  return state === undefined ? reasonInWords(thrown) : `${messageOf(thrown)} (SQLSTATE ${state})`
}

/** Of a database that answers and cannot write. */
const CANNOT_WRITE: Readonly<Record<string, string>> = {
  '53100': 'its disk is full',
  '25006': 'it only reads',
  '42501': 'its role may not write',
}

/** Whether the database answered, and takes no write: so it can be read. */
export const takesNoWrite = (thrown: unknown): boolean =>
  !hasLostConnection(thrown) && (stateOf(thrown) ?? '') in CANNOT_WRITE

/** Why the database has refused a write that it would take otherwise, in words without an address; undefined for other errors. */
export function refusalOf(thrown: unknown): string | undefined {
  const state = stateOf(thrown)
  if (state === undefined || !beginsWithOneOf(state, ['25006', ...OUT_OF_ORDER])) return undefined
  return `${CANNOT_WRITE[state] ?? 'it refuses them'} (SQLSTATE ${state})`
}
