/** The state of a service on one page (C11.5.5): its troubles, and the work that it does. */
import { DAY_MS } from '../../../base/kernel/units.ts'
import type { ListedKey } from '../../../identity/keys/signing/listed-keys.ts'

export interface UpstreamStatus {
  readonly backend: string
  readonly healthy: number | undefined
  readonly ejected: number | undefined
  readonly inFlight: number | undefined
  readonly waiting: number | undefined
  readonly connections: number | undefined
}

export interface ProcessStatus {
  /** `main`, or `worker-N`. */
  readonly name: string
  readonly memoryBytes: number | undefined
  readonly eventLoopDelaySeconds: number | undefined
}

interface SwitchStatus {
  readonly scope: string
  readonly state: 'on' | 'planned'
  readonly from: string | undefined
  readonly until: string | undefined
  readonly reason: string | undefined
}

/** A client or user that a command has disabled by a mark. */
export interface MarkStatus {
  readonly client?: string
  /** The `sub` of a user, in place of the name, which is personal. */
  readonly subject?: string
  readonly since: string
}

interface KeyStatus {
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
  readonly processes: readonly ProcessStatus[]
  /** All processes together. */
  readonly memory: { readonly bytes: number | undefined; readonly limitBytes: number | undefined }
  /** The data folder, and what its disk has left. */
  readonly data: { readonly bytes: number | undefined; readonly freeBytes: number | undefined }
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
    /** How many nodes the store counts; undefined where it is of one machine. */
    readonly nodes: number | undefined
    /** How many different configurations those nodes have. */
    readonly nodeConfigurations: number | undefined
    /** A digest of the configuration, which other nodes compare with their own. */
    readonly nodeConfiguration: string | undefined
  }
  readonly keys: readonly KeyStatus[]
  readonly certificates: readonly { readonly name: string; readonly expires: string }[]
  readonly upstreams: readonly UpstreamStatus[]
  readonly maintenance: readonly SwitchStatus[]
  readonly reportOnly: readonly string[]
  /** Who is disabled by a mark (`client disable`, `user disable`); undefined if nobody can tell. */
  readonly disabled: readonly MarkStatus[] | undefined
  readonly audit: {
    readonly kept: boolean
    readonly writable: boolean | undefined
    readonly openIntents: number | undefined
    /** Open intents of processes that have ended. */
    readonly abandonedIntents: number | undefined
    readonly signed: string | undefined
    readonly anchored: string | undefined
  }
}

/**
 * Why a configuration without a mistake is refused: the store or the audit trail cannot be reached, its files change while
 * they are read, or something else, which is in the log.
 */
export const PASSING_CAUSES = ['store', 'trail', 'files', 'unknown'] as const
export type PassingCause = (typeof PASSING_CAUSES)[number]

/** How the configuration in force came to be. Times in milliseconds since the epoch. */
export interface ConfigurationStanding {
  readonly loadedAt: number
  /** The last reload, if it was refused: the configuration before stays in force. */
  readonly refused:
    | {
        readonly at: number
        readonly via: string
        readonly problems: readonly string[]
        /** Undefined for a mistake in its files; any other is tried again by itself. */
        readonly cause: PassingCause | undefined
      }
    | undefined
}

type Facts = Omit<Status, 'troubles'>

/** After how many seconds the change feed is too old, as the alert rules have it. */
const OLD_FEED = 10
/** How long before its end a certificate is a trouble, in milliseconds. */
const SOON = 14 * DAY_MS
/** How late a planned key may be, in milliseconds. */
const LATE_KEY = 3_600_000

const isBefore = (time: string | undefined, limit: number): boolean =>
  time !== undefined && Date.parse(time) < limit

const storeTroubles = ({
  store: { up, feedAgeSeconds = 0, nodes, nodeConfigurations = 0 },
}: Facts): string[] => [
  ...(nodeConfigurations > 1
    ? [
        `The ${nodes ?? 0} nodes of the store have ${nodeConfigurations} different configurations: \`postern nodes\` tells which.`,
      ]
    : []),
  ...(up === false ? ['The store is out of reach: nobody can log in, and nothing can be revoked.'] : []),
  ...(feedAgeSeconds > OLD_FEED
    ? [
        `The change feed was last read ${Math.round(feedAgeSeconds)} s ago: what was revoked since may still be accepted.`,
      ]
    : []),
]

/** The troubles of the audit trail. If it cannot be written, that is among `degraded`. */
const auditTroubles = ({ audit: { abandonedIntents = 0 } }: Facts): string[] =>
  abandonedIntents > 0
    ? [
        `Changes of unknown outcome, as their processes ended: ${abandonedIntents}. To see them: postern audit open.`,
      ]
    : []

const upstreamTroubles = ({ upstreams }: Facts): string[] =>
  upstreams.flatMap(({ backend, healthy, ejected = 0 }) => {
    if (ejected === 0) return []
    return healthy === 0
      ? [`Backend ${backend} has no target left: all ${ejected} failed.`]
      : [`Backend ${backend}: ${ejected} of ${ejected + (healthy ?? 0)} targets failed and get no calls.`]
  })

const reloadTroubles = ({ configuration: { loaded, refused } }: Facts): string[] =>
  refused === undefined
    ? []
    : [
        `A reload was refused at ${refused.at} (${refused.via}); the configuration of ${loaded} stays in force.`,
        ...refused.problems.map((problem) => `  ${problem}`),
      ]

const certificateTroubles = ({ certificates }: Facts, now: number): string[] =>
  certificates.flatMap(({ name, expires }) => {
    if (isBefore(expires, now)) return [`The certificate ${name} expired at ${expires}.`]
    return isBefore(expires, now + SOON) ? [`The certificate ${name} expires at ${expires}.`] : []
  })

const keyTroubles = ({ keys }: Facts, now: number): string[] =>
  keys
    .filter(({ nextRotation }) => isBefore(nextRotation, now - LATE_KEY))
    .map(({ name, nextRotation = '' }) => `The key that follows ${name} should sign since ${nextRotation}.`)

const maintenanceTroubles = ({ maintenance }: Facts): string[] =>
  maintenance
    .filter(({ state }) => state === 'on')
    .map(({ scope, from, until }) => {
      const since = from === undefined ? '' : ` since ${from}`
      return `Closed for maintenance${since}: ${scope}, ${until === undefined ? 'until somebody opens it' : `until ${until}`}.`
    })

/** What is wrong, in sentences, in the order in which somebody is to read it. */
export function findTroubles(status: Facts, now: number, keysUnreadable: boolean): readonly string[] {
  const { failing, degraded, calls, reportOnly } = status
  return [
    ...failing.map((name) => `Not ready: ${name}.`),
    ...storeTroubles(status),
    ...auditTroubles(status),
    ...upstreamTroubles(status),
    ...(keysUnreadable ? ['The signing keys cannot be read.'] : []),
    ...(calls.shedding ? ['Calls are refused because of overload.'] : []),
    ...degraded.map(({ name, reason }) => `Works badly: ${name}: ${reason}.`),
    ...reloadTroubles(status),
    ...certificateTroubles(status, now),
    ...keyTroubles(status, now),
    ...maintenanceTroubles(status),
    ...reportOnly.map((area) => `Area ${area} is report-only: it refuses nothing.`),
  ]
}
