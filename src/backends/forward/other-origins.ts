import type { ConnectionCounts } from '../../upstream/connection-queue.ts'
import { type PoolRules, sumOfCounts, UpstreamPool } from '../../upstream/pool.ts'
import { parseUpstreamAddress } from '../../upstream/socket.ts'

/**
 * Connections to origins that redirects lead to (C8.8). Their certificates are verified by their own host names, against
 * the same authorities; the client certificate is the targets' alone.
 */
export class OtherOrigins {
  readonly #rules: PoolRules
  readonly #pools = new Map<string, UpstreamPool>()
  #isClosed = false

  constructor({ tls: { ca }, ...rules }: PoolRules) {
    this.#rules = { ...rules, tls: ca === undefined ? {} : { ca } }
  }

  /** @param origin one that the configuration names: there are no more pools than these */
  poolOf(origin: string): UpstreamPool {
    const known = this.#pools.get(origin)
    if (known !== undefined) return known
    const address = parseUpstreamAddress(origin)
    if (address === undefined) throw new TypeError(`no origin: ${origin}`)
    const pool = new UpstreamPool(address, this.#rules)
    this.#pools.set(origin, pool)
    if (this.#isClosed) void pool.close()
    return pool
  }

  get counts(): ConnectionCounts {
    return sumOfCounts([...this.#pools.values()].map((pool) => pool.counts))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }
}
