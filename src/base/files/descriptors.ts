/** How many files and connections (descriptors) this process may have open, and how many of them are kept back (C11.1.1). */
import { readdirSync, readFileSync } from 'node:fs'

/** The most that are kept, and the share that is kept where the limit is low. */
const KEPT = 256
const KEPT_SHARE = 1 / 4
/** How many files a process without calls has open, where that cannot be counted. */
const USUAL = 64

export interface Descriptors {
  /** Infinity where the system does not tell. */
  readonly limit: number
  /** Kept for operators, health, the store, files and log: clients get none of them. */
  readonly kept: number
}

export const descriptorsOf = (limit: number): Descriptors => ({
  limit,
  kept: Math.min(KEPT, Math.floor(limit * KEPT_SHARE)),
})

let own: Descriptors | undefined

/** The limit of this process. Node has raised its limit to the hard one (`ulimit -Hn`) as it began. */
export const descriptors = (): Descriptors => (own ??= descriptorsOf(readLimit()))

function readLimit(): number {
  try {
    const soft = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** How many this process has open now. It takes longer the more there are. */
export function countDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return USUAL
  }
}

/**
 * The number of a socket's descriptor; -1 where it has none. The system gives the lowest free number: all below are in use. Node has
 * no API for it, and keeps it in its handle.
 */
export function descriptorOf(socket: object): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}

/** Whether a descriptor is one of those that are kept. Upstreams may have half of what is kept from clients. */
export const isKeptFrom = (
  whom: 'clients' | 'upstreams',
  descriptor: number,
  { limit, kept } = descriptors(),
): boolean => descriptor >= limit - (whom === 'clients' ? kept : kept / 2)
