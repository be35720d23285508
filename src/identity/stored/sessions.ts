import { hash } from 'node:crypto'
import type { Entry, Purpose, Store } from '../../base/contracts/records/store.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import { epochSeconds } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import { createOf } from '../directory/records/stored-directory.ts'
import type { LogoutNotices } from '../dependencies/logouts.ts'

/** Kind of record: logins in browsers, by the SHA-256 of the cookie's value. */
export const SESSION = 'session'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
export type SessionRecord = {
  readonly subject: string
  /** Time of the user's authentication, seconds since the epoch. */
  readonly authTime: number
  readonly browser: string
  /** Network address of the last use, and its time in milliseconds since the epoch; absent if an older version wrote it. */
  readonly address?: string
  readonly lastUsedAt?: number
  /** `RevocationRules.asOf` of the login; absent if an older version began the session. */
  readonly asOf?: number
  /**
   * By which clients know it (C6.3.3a). It stays at the same person's next login in the browser. Absent if an older version
   * began the session.
   */
  readonly sid?: string
}

export interface Session extends SessionRecord {
  readonly key: string
  readonly version: number
}

type NewSession = Required<Omit<SessionRecord, 'authTime' | 'lastUsedAt'>>

/** How exactly the time of the last use is kept, in milliseconds: otherwise each page would be a write. */
const USE_STEP_MS = 60_000

/** A session that is drawn. Its cookie is of no use before `begin` has stored it. */
interface DrawnSession {
  readonly key: string
  readonly cookie: string
  readonly begin: () => Promise<void>
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Sessions {
  /** Draws a session. Its cookie value is always new (against session fixation). */
  draw(login: NewSession): DrawnSession
  /** By the cookie's value. Undefined if the session is unknown, expired, or ended by a rule. */
  find(cookie: string, purpose?: Purpose): Promise<Session | undefined>
  /** Keeps the time and the address of a use, once a minute at most. Never rejects. */
  noteUse(session: Session, address: string): Promise<void>
  listOf(subject: string): Promise<readonly Session[]>
  /**
   * Ends the session if it is that user's. False if there is none. The clients that know it are told, unless another one goes
   * on under its `sid`.
   */
  end(key: string, subject: string, next?: Pick<SessionRecord, 'sid'>): Promise<boolean>
}

const keyOf = (cookie: string): string => hash('sha256', cookie, 'base64url')

const sessionOf = ({ key, value, version }: Entry): Session => ({
  key,
  version,
  ...(value as SessionRecord),
})

export const isOver = (
  { asOf, authTime, subject }: SessionRecord,
  rules: Pick<RevocationRules, 'hasEnded'>,
): boolean => rules.hasEnded({ subject, asOf, begunAt: authTime * 1000 })

/** False if it is gone. Its notices are stored first, so that a process that dies in between loses none. */
export async function endStoredSession(
  key: string,
  { sid }: SessionRecord,
  { store, logouts }: { readonly store: Pick<Store, 'remove'>; readonly logouts: LogoutNotices },
  next?: Pick<SessionRecord, 'sid'>,
): Promise<boolean> {
  if (sid !== undefined && sid !== next?.sid) await logouts.endSession(sid)
  return store.remove(SESSION, key)
}

export function openSessions({
  store,
  clock,
  config,
  rules,
  logouts,
}: Pick<IdentityDeps, 'store' | 'clock' | 'config' | 'rules' | 'logouts'>): Sessions {
  const find = async (key: string, purpose?: Purpose): Promise<Session | undefined> => {
    const entry = await store.find(SESSION, key, purpose)
    const session = entry && sessionOf(entry)
    return session === undefined || isOver(session, rules) ? undefined : session
  }
  return {
    draw(login) {
      const cookie = newSecret()
      const key = keyOf(cookie)
      const begin = async (): Promise<void> => {
        const { subject } = login
        const value: SessionRecord = { ...login, authTime: epochSeconds(clock), lastUsedAt: clock.now() }
        const expiresAt = clock.now() + config.session.lifetime
        await createOf(subject, { kind: SESSION, key, value, expiresAt, indexes: { subject } }, store)
      }
      return { key, cookie, begin }
    },
    find: (cookie, purpose) => find(keyOf(cookie), purpose),
    async noteUse({ key, version, ...record }, address) {
      const now = clock.now()
      if (now - (record.lastUsedAt ?? 0) < USE_STEP_MS) return
      const used: SessionRecord = { ...record, address, lastUsedAt: now }
      // If another call changed or ended it meanwhile, that one was later. Only its user sees the time: no page fails for it.
      await store.replace(SESSION, key, version, used).catch(() => undefined)
    },
    async listOf(subject) {
      const entries = await store.listBy(SESSION, 'subject', subject)
      const live = entries.map(sessionOf).filter((session) => !isOver(session, rules))
      return live.sort((a, b) => b.authTime - a.authTime)
    },
    async end(key, subject, next) {
      const session = await find(key, 'end')
      return session?.subject === subject && endStoredSession(key, session, { store, logouts }, next)
    },
  }
}
