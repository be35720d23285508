import { hash } from 'node:crypto'
import type { Entry, Store } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { createOf } from '../directory/records/stored-directory.ts'

/**
 * Kind of record: links by which people set their password, by the SHA-256 of the link's code (C6.3.7).
 *
 * A link is good for the password that stood when it was made: whoever sets another one, by this link or elsewhere, ends it
 * in the same write. So nothing marks a link as used, and of many uses at once one counts, over any number of nodes.
 */
export const PASSWORD_LINK = 'password_link'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type LinkRecord = {
  readonly username: string
  readonly subject: string
  /** SHA-256 of the hash of the password that it replaces. */
  readonly replaces: string
  /** When it was made, in milliseconds since the epoch: the newest of a person counts. */
  readonly at: number
}

/** The user whose password a link sets. */
interface LinkedUser {
  readonly username: string
  readonly subject: string
  /** The hash of the present password. */
  readonly password: string
}

export interface PasswordLink extends LinkRecord {
  readonly key: string
}

/** A link that is drawn. Nobody can use it before `open` has stored it. */
interface DrawnLink {
  readonly code: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly open: () => Promise<void>
  /** Whether it is good for a user, as the directory has them now. */
  readonly isFor: (user: LinkedUser) => boolean
  /** Takes it back. */
  readonly withdraw: () => Promise<unknown>
}

/** The form of a value of newSecret(). */
const CODE = /^[A-Za-z0-9_-]{43}$/

/** Whether a text may be the code of a link. */
export const isLinkCode = (text: string | undefined): text is string => text !== undefined && CODE.test(text)

const digestOf = (text: string): string => hash('sha256', text, 'base64url')

const linkOf = ({ key, value }: Entry): PasswordLink => ({ key, ...(value as LinkRecord) })

/** Whether the link is good for a user, as the directory has them now: another password ends it. */
export const isLinkFor = (
  { replaces, subject }: LinkRecord,
  user: Pick<LinkedUser, 'subject' | 'password'>,
): boolean => user.subject === subject && digestOf(user.password) === replaces

/** Draws a link. The one before it ends when it is opened. @param lifetime milliseconds */
export function drawPasswordLink(
  { username, subject, password }: LinkedUser,
  lifetime: number,
  {
    store,
    clock,
  }: { readonly store: Pick<Store, 'create' | 'find' | 'remove' | 'removeBy'>; readonly clock: Clock },
): DrawnLink {
  const code = newSecret()
  const key = digestOf(code)
  const at = clock.now()
  const expiresAt = at + lifetime
  const value: LinkRecord = { username, subject, replaces: digestOf(password), at }
  return {
    code,
    expiresAt,
    open: async () => {
      await store.removeBy(PASSWORD_LINK, { subject })
      await createOf(subject, { kind: PASSWORD_LINK, key, value, expiresAt, indexes: { subject } }, store)
    },
    isFor: (user) => isLinkFor(value, user),
    withdraw: () => store.remove(PASSWORD_LINK, key),
  }
}

/** Undefined for a code that is unknown or too old, and where a newer link was made. Rejects as the store does. */
export async function findPasswordLink(
  code: string,
  store: Pick<Store, 'find' | 'listBy'>,
): Promise<PasswordLink | undefined> {
  const entry = await store.find(PASSWORD_LINK, digestOf(code))
  if (entry === undefined) return undefined
  const link = linkOf(entry)
  // Two that were made at the same time may both be there.
  const all = (await store.listBy(PASSWORD_LINK, 'subject', link.subject)).map(linkOf)
  const isOlder = all.some(({ at, key }) => at > link.at || (at === link.at && key > link.key))
  return isOlder ? undefined : link
}
