import type { Entry, StoredValue } from '../../base/contracts/records/store.ts'
import { siteOf } from '../../base/http/head/addresses.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import { DAY_MS } from '../../base/kernel/units.ts'
import { createOf } from '../directory/records/stored-directory.ts'

/** Kind of record: the networks from which a user has logged in, by subject (C6.3.5). */
export const LOGIN_NETWORKS = 'login_networks'

const MOST = 8
const KEPT_MS = 90 * DAY_MS
/** Tries to write a record that other logins write too. After these, another login of the user was stored. */
const TRIES = 3

type Network = {
  /** Keyed hash of network and subject. The key is not in the store, so the store reveals no addresses. */
  readonly hash: string
  /** Time of the last login from there, milliseconds since the epoch; up to a day too early. */
  readonly at: number
}

export interface FamiliarNetworks {
  /** What is known about an address before the password is checked. Never rejects. */
  recall(subject: string | undefined, address: string): Promise<Familiarity>
}

interface Familiarity {
  /** True if the user has logged in from there in the last 90 days. */
  readonly familiar: boolean
  /** Stores that the user has just logged in from there. Never rejects. */
  remember(): Promise<void>
}

/**
 * While the store cannot be read, every network counts as familiar. Guessing is then delayed by user, client and network
 * only, so that a problem of the store delays no user.
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

  /** True if the network is stored, by this or an earlier login. */
  const keep = async (subject: string, hash: string): Promise<boolean> => {
    const { entry, networks } = await find(subject)
    const now = clock.now()
    if (networks.some((network) => network.hash === hash && now - network.at < DAY_MS)) return true
    const others = networks.filter((network) => network.hash !== hash)
    const value = { networks: [{ hash, at: now }, ...others].slice(0, MOST) }
    const expiresAt = now + KEPT_MS
    return entry === undefined
      ? createOf(subject, { kind: LOGIN_NETWORKS, key: subject, value, expiresAt }, store)
      : store.replace(LOGIN_NETWORKS, subject, entry.version, value, expiresAt)
  }

  return {
    async recall(named, address) {
      // The store is read for a user who does not exist too: the time must be the same (T3.9).
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

/** If the store is unavailable, nothing is stored: the next login tries again. Nor if the data of the user was erased. */
const isDown = (): boolean => true

export const networksIn = (value: StoredValue | undefined): readonly Network[] =>
  value === undefined ? [] : (value['networks'] as readonly Network[])
