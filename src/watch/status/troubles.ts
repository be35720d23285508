/** What is wrong with a service, in sentences: the first thing that a status tells. */
import { DAY_MS } from '../../kernel/units.ts'
import type { Status } from './status.ts'

type Facts = Omit<Status, 'troubles'>

/** Seconds after which the change feed is too old, as the alert rules have it. */
const OLD_FEED = 10
/** Milliseconds before its end that a certificate is told of. */
const SOON = 14 * DAY_MS
/** Milliseconds that a planned key may be late. */
const LATE_KEY = 3_600_000

const isBefore = (time: string | undefined, limit: number): boolean =>
  time !== undefined && Date.parse(time) < limit

const storeTroubles = ({ store: { up, feedAgeSeconds = 0 } }: Facts): string[] => [
  ...(up === false ? ['The store is out of reach: nobody can log in, and nothing can be revoked.'] : []),
  ...(feedAgeSeconds > OLD_FEED
    ? [
        `The change feed was last read ${Math.round(feedAgeSeconds)} s ago: what was revoked since may still be accepted.`,
      ]
    : []),
]

/** That it cannot be written is among what works badly. */
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

/** The state of the whole, in the order in which somebody is to read it. */
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
