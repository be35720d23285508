/** The data folder's memory of a store of this machine, so that one that was put back is noticed (C11.7.3). */
import { readFileSync } from 'node:fs'
import type { AuditQuery, AuditRow, TrailReader } from '../../base/contracts/records/audit-query.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { AUDIT_EVENTS, type AuditEvent } from '../../base/kernel/audit-events.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { ChangeFeed } from '../../state/stores/feed/change-feed.ts'
import {
  LOST_BY_FAILOVER,
  type OwnMemory,
  readOwnMemory,
  SeenChanges,
  writeOwnMemory,
} from '../../state/stores/feed/feed-progress.ts'
import { newestChangeOf } from '../../state/stores/read-store.ts'
import { planSqlite } from '../../state/stores/schema.ts'
import { idOfStore } from '../../state/stores/sqlite/store-files.ts'

/** The path of the file; undefined where the store is no file. */
const fileOf = (configuration: Configuration): string | undefined =>
  !isSidecar(configuration) && configuration.store.kind === 'sqlite'
    ? planSqlite(configuration.store, configuration.data).path
    : undefined

/** Acts that each append a change to the feed. An export and a link for a password append none. */
const APPENDING =
  /^(?:client|user|business|fund|role)\.(?!exported$|link_made$)|^revocation\.ordered$|^maintenance\.switched$/
const EVENTS = (Object.keys(AUDIT_EVENTS) as AuditEvent[]).filter((event) => APPENDING.test(event))

/** By how many milliseconds the record of an act may be younger than the change that the act made. */
const ACT = 60_000
/** How many changes are named. */
const NAMED = 5

/** Drawn by the system at each start of the machine; undefined on a system that has none. */
function bootOfMachine(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}

interface Comparing {
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  /** Absent where no trail is kept. */
  readonly trail?: Pick<TrailReader, 'query'> | undefined
  readonly boot?: string | undefined
}

/**
 * Compares the store with what its data folder and the audit trail have seen, before any process opens it. Missing changes are
 * remembered as a doubt, which each process of the service reads. Without a memory of this store there is nothing to doubt.
 *
 * A power cut may take the last changes from the store, and not from the trail. So after another start of the machine the trail
 * counts only beyond the time when the service can have run.
 */
export async function compareWithMemory(
  configuration: Configuration,
  { clock, recorder, trail, boot = bootOfMachine() }: Comparing,
): Promise<void> {
  const path = fileOf(configuration)
  const newest = path === undefined ? undefined : newestChangeOf(path)
  const memory = path === undefined ? undefined : readOwnMemory(configuration.data, idOfStore(path))
  if (newest === undefined || memory === undefined || memory.doubted) return
  const isSameBoot = boot !== undefined && memory.boot === boot
  const ran = isSameBoot
    ? Math.max(memory.since, memory.at - LOST_BY_FAILOVER)
    : memory.at + 2 * LOST_BY_FAILOVER
  const isOlder = memory.sequence > newest
  const later = await laterInTrail(trail, isOlder ? newest + 1 : Math.max(newest + ACT, ran), recorder)
  if (!isOlder && later.length === 0) return
  const doubt = doubtOf(memory, later, clock.now())
  recorder.note('error', 'store.older_than_seen', {
    seen: new Date(doubt.sequence).toISOString(),
    has: new Date(newest).toISOString(),
    lacks: doubt.lacks,
  })
  writeOwnMemory(configuration.data, doubt)
}

function doubtOf(memory: OwnMemory, later: readonly AuditRow[], now: number): OwnMemory {
  const times = later.map(({ time }) => Date.parse(time))
  const more = later.length > NAMED ? [`and ${later.length - NAMED} more`] : []
  return {
    ...memory,
    sequence: Math.max(memory.sequence, ...times),
    doubted: true,
    at: now,
    lacks: [...later.slice(0, NAMED).map(changeText), ...more],
  }
}

/** Names of people are personal: a user is told by the subject. */
function changeText({ event, on, time }: AuditRow): string {
  const names = [on?.kind === 'user' ? on.subject : on?.id, on?.business, on?.fund]
  return [event, ...names.filter((name) => name !== undefined && name !== ''), time].join(' ')
}

/** The acts since a time that have changed something, oldest first. A trail that cannot be read tells nothing. */
async function laterInTrail(
  trail: Comparing['trail'],
  from: number,
  recorder: Pick<Recorder, 'note'>,
): Promise<readonly AuditRow[]> {
  if (trail === undefined) return []
  const query: AuditQuery = { events: EVENTS, from, outcome: 'success' }
  const rows: AuditRow[] = []
  try {
    for await (const step of trail.query({ query }))
      if (step.kind === 'rows') rows.push(...step.lines.map((line) => JSON.parse(line) as AuditRow))
  } catch (cause) {
    recorder.note('warn', 'store.trail_not_compared', { cause })
  }
  return rows
}

interface Remembering extends Omit<Comparing, 'trail'> {
  readonly feed: Pick<ChangeFeed, 'seen' | 'settled'>
  readonly opened: AsyncDisposableStack
}

/** Remembers what the store has, from now on until the service has ended. */
export function rememberOwn(
  configuration: Configuration,
  { clock, recorder, feed, opened, boot = bootOfMachine() }: Remembering,
): void {
  const path = fileOf(configuration)
  const store = path === undefined ? undefined : idOfStore(path)
  if (store === undefined) return
  const { data } = configuration
  const before = readOwnMemory(data, store)
  const since = clock.now()
  const seen = (ends: boolean): OwnMemory => {
    const { sequence, doubted } = ends || feed.seen.doubted ? feed.seen : feed.settled
    const now = clock.now()
    return {
      store,
      boot,
      doubted,
      since,
      sequence: Math.max(sequence, before?.sequence ?? 0),
      // Not each moment: so the file is written every five minutes.
      at: ends ? now : now - (now % LOST_BY_FAILOVER),
      ...(doubted && { lacks: before?.lacks }),
    }
  }
  const changes = new SeenChanges({ data, seen, recorder })
  opened.defer(() => changes.stop())
}
