import type { Entry, StoredValue } from '../../contracts/store.ts'
import { siteOf } from '../../http/addresses.ts'
import type { IdentityDeps } from '../dependencies.ts'

/** Where users have logged in from, by subject (C6.3.5). */
const LOGIN_NETWORKS = 'login_networks'

/** Of a user: the latest ones. */
const MOST = 8
const DAY_MS = 24 * 60 * 60 * 1000
const KEPT_MS = 90 * DAY_MS
/** Tries at a record that others write too: then some other login of the user was kept. */
const TRIES = 3

type Network = {
  /** Of the site and the subject, with a secret that is no part of the store: nobody can read addresses out of it. */
  readonly hash: string
  /** Of the last login from there, to within a day. Milliseconds since the epoch. */
  readonly at: number
}

export interface FamiliarNetworks {
  /** What is known of an address, before it is known whether the password is right. */
  recall(subject: string | undefined, address: string): Promise<Familiarity>
}

export interface Familiarity {
  /** The user has logged in from there in the last 90 days. */
  readonly familiar: boolean
  /** The user has just logged in from there. Never rejects. */
  remember(): Promise<void>
}

/**
 * While the store can't be asked every network is familiar: then guessing is slowed by user, client and network only,
 * and nobody who may log in is held up because a disk is full.
 */
const UNKNOWABLE: Familiarity = { familiar: true, remember: () => Promise.resolve() }

export function openFamiliarNetworks({
  store,
  clock,
  deriver,
}: Pick<IdentityDeps, 'store' | 'clock' | 'deriver'>): FamiliarNetworks {
  const find = async (subject: string): Promise<Found> => {
    const entry = await store.find(LOGIN_NETWORKS, subject)
    return { entry, networks: networksIn(entry?.value).filter(({ at }) => clock.now() - at < KEPT_MS) }
  }

  /** True if it is kept, by this or an earlier login. */
  const keep = async (subject: string, hash: string): Promise<boolean> => {
    const { entry, networks } = await find(subject)
    const now = clock.now()
    if (networks.some((network) => network.hash === hash && now - network.at < DAY_MS)) return true
    const others = networks.filter((network) => network.hash !== hash)
    const value = { networks: [{ hash, at: now }, ...others].slice(0, MOST) }
    const expiresAt = now + KEPT_MS
    return entry === undefined
      ? store.create(LOGIN_NETWORKS, subject, { value, expiresAt })
      : store.replace(LOGIN_NETWORKS, subject, entry.version, value, expiresAt)
  }

  return {
    async recall(named, address) {
      // Who does not exist has a record to theme for too: it must not take less time (T3.9).
      const subject = named ?? ''
      const hash = deriver.derive(JSON.stringify(['login network', subject, siteOf(address)]))
      try {
        const { networks } = await find(subject)
        return {
          familiar: networks.some((network) => network.hash === hash),
          remember: async () => {
            for (let tries = 0; tries < TRIES; tries++) if (await keep(subject, hash).catch(isDown)) return
          },
        }
      } catch {
        return UNKNOWABLE
      }
    },
  }
}

interface Found {
  readonly entry: Entry | undefined
  readonly networks: readonly Network[]
}

/** A store that is down keeps nothing; the next login tries again. */
const isDown = (): boolean => true

const networksIn = (value: StoredValue | undefined): readonly Network[] =>
  value === undefined ? [] : (value['networks'] as readonly Network[])
