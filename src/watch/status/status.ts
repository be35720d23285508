/** How a service is, on one page (C11.5.5). */
import type { ListedKey } from './key-orders.ts'

export interface UpstreamStatus {
  readonly backend: string
  readonly healthy: number | undefined
  readonly ejected: number | undefined
  readonly inFlight: number | undefined
  readonly waiting: number | undefined
  readonly connections: number | undefined
}

export interface SwitchStatus {
  readonly scope: string
  readonly state: 'on' | 'planned'
  readonly from: string | undefined
  readonly until: string | undefined
  readonly reason: string | undefined
}

export interface KeyStatus {
  readonly name: string
  readonly state: ListedKey['state']
  readonly nextRotation: string | undefined
  readonly ends: string | undefined
}

/** Plain data. A value that no process has measured is undefined. Times are texts of RFC 3339. */
export interface Status {
  /** What is wrong, the worst first; empty if nothing is known to be. */
  readonly troubles: readonly string[]
  readonly ready: boolean
  readonly failing: readonly string[]
  readonly degraded: readonly { readonly name: string; readonly reason: string }[]
  readonly version: string
  readonly node: string
  readonly at: string
  readonly started: string
  readonly kind: 'service' | 'sidecar'
  readonly configuration: {
    readonly file: string | undefined
    readonly digest: string
    readonly loaded: string
    readonly refused:
      | {
          readonly at: string
          readonly via: string
          readonly problems: readonly string[]
          readonly cause: string | undefined
        }
      | undefined
  }
  /** How many processes are in each state. */
  readonly workers: Readonly<Record<string, number>>
  readonly calls: {
    readonly inFlight: number | undefined
    readonly shedding: boolean
    readonly websockets: number
    readonly passwordChecksWaiting: number | undefined
  }
  readonly lockouts: number | undefined
  readonly store: {
    readonly kind: string
    readonly up: boolean | undefined
    readonly bytes: number | undefined
    readonly feedAgeSeconds: number | undefined
    /** That it counts; undefined where it is of one machine. */
    readonly nodes: number | undefined
    /** A digest of the configuration, which other nodes compare with their own. */
    readonly nodeConfiguration: string | undefined
  }
  readonly keys: readonly KeyStatus[]
  readonly certificates: readonly { readonly name: string; readonly expires: string }[]
  readonly upstreams: readonly UpstreamStatus[]
  readonly maintenance: readonly SwitchStatus[]
  readonly reportOnly: readonly string[]
  readonly audit: {
    readonly kept: boolean
    readonly writable: boolean | undefined
    readonly openIntents: number | undefined
    /** Of processes that have ended. */
    readonly abandonedIntents: number | undefined
    readonly signed: string | undefined
    readonly anchored: string | undefined
  }
}
