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
  /** Of the call in which the user logged in (RuleGuard); absent from what an older version began. */
  readonly asOf?: number
}

export interface Session extends SessionRecord {
  readonly key: string
}

export type NewSession = Required<Omit<SessionRecord, 'authTime'>>

export interface Sessions {
  /** Begins one, under a value of its own: nothing that the browser had before the login counts after it. */
  start(login: NewSession): Promise<string>
  /** Undefined for one that is unknown, expired, or ended by a rule. */
  find(cookie: string): Promise<Session | undefined>
  listOf(subject: string): Promise<readonly Session[]>
  /** Ends it, if it is that user's. */
  end(key: string, subject: string): Promise<void>
}

const keyOf = (cookie: string): string => createHash('sha256').update(cookie).digest('base64url')

const sessionOf = ({ key, value }: Entry): Session => ({ key, ...(value as SessionRecord) })

type SessionDeps = Pick<IdentityDeps, 'store' | 'clock' | 'config' | 'rules'>

export function openSessions({ store, clock, config, rules }: SessionDeps): Sessions {
  const isOver = ({ asOf, authTime, subject }: Session): boolean =>
    rules.hasEnded({ subject, asOf, begunAt: authTime * 1000 })

  const find = async (key: string): Promise<Session | undefined> => {
    const entry = await store.find(SESSION, key)
    const session = entry && sessionOf(entry)
    return session === undefined || isOver(session) ? undefined : session
  }
  return {
    async start(login) {
      const cookie = newSecret()
      const { subject } = login
      const value: SessionRecord = { ...login, authTime: epochSeconds(clock) }
      const expiresAt = clock.now() + config.session.lifetime
      await store.create(SESSION, keyOf(cookie), { value, expiresAt, indexes: { subject } })
      return cookie
    },
    find: (cookie) => find(keyOf(cookie)),
    async listOf(subject) {
      const entries = await store.listBy(SESSION, 'subject', subject)
      const live = entries.map(sessionOf).filter((session) => !isOver(session))
      return live.sort((a, b) => b.authTime - a.authTime)
    },
    async end(key, subject) {
      if ((await find(key))?.subject === subject) await store.remove(SESSION, key)
    },
  }
}
