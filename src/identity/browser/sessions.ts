import { createHash } from 'node:crypto'
import { epochSeconds } from '../../kernel/clock.ts'
import { newSecret } from '../../kernel/ids.ts'
import type { Entry } from '../../contracts/store.ts'
import type { IdentityDeps } from '../deps.ts'

/** Logins in browsers, by the SHA-256 of the cookie's value. */
export const SESSION = 'session'

/** A type alias, since an interface has no index signature and so is no StoredValue. */
type SessionRecord = {
  readonly subject: string
  /** When the user proved who they are, seconds since the epoch. */
  readonly authTime: number
  /** For the user to recognise it by: "Firefox on Windows". */
  readonly browser: string
}

export interface Session extends SessionRecord {
  readonly key: string
}

export interface Sessions {
  /** Begins one, under a value of its own: nothing that the browser had before the login counts after it. */
  start(subject: string, browser: string): Promise<string>
  find(cookie: string): Promise<Session | undefined>
  listOf(subject: string): Promise<readonly Session[]>
  /** Ends it, if it is that user's. */
  end(key: string, subject: string): Promise<void>
}

const keyOf = (cookie: string): string => createHash('sha256').update(cookie).digest('base64url')

const sessionOf = ({ key, value }: Entry): Session => ({ key, ...(value as SessionRecord) })

type SessionDeps = Pick<IdentityDeps, 'store' | 'clock' | 'config'>

export function openSessions({ store, clock, config }: SessionDeps): Sessions {
  const find = async (key: string): Promise<Session | undefined> => {
    const entry = await store.find(SESSION, key)
    return entry && sessionOf(entry)
  }
  return {
    async start(subject, browser) {
      const cookie = newSecret()
      const value: SessionRecord = { subject, authTime: epochSeconds(clock), browser }
      const expiresAt = clock.now() + config.session.lifetime
      await store.create(SESSION, keyOf(cookie), { value, expiresAt, indexes: { subject } })
      return cookie
    },
    find: (cookie) => find(keyOf(cookie)),
    async listOf(subject) {
      const entries = await store.listBy(SESSION, 'subject', subject)
      return entries.map(sessionOf).sort((a, b) => b.authTime - a.authTime)
    },
    async end(key, subject) {
      if ((await find(key))?.subject === subject) await store.remove(SESSION, key)
    },
  }
}
