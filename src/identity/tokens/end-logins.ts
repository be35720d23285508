import type { Store } from '../../contracts/store.ts'
import { SESSION } from '../browser/sessions.ts'
import { CODE } from './codes.ts'
import { FAMILY, REFRESH_TOKEN } from './families.ts'

/** Families before their tokens: without its family a token is worth nothing. */
const BEGUN_BY_LOGIN = [SESSION, CODE, FAMILY, REFRESH_TOKEN]

/**
 * Ends all that a subject began by logging in, but for access tokens, which a rule revokes, and consents, which are
 * the subject's will and open nothing by themselves.
 */
export async function endLogins(store: Pick<Store, 'removeBy'>, subject: string): Promise<void> {
  for (const kind of BEGUN_BY_LOGIN) await store.removeBy('subject', subject, kind)
}
