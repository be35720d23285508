/** Trails that tests write with the real writer and the real signer, to be changed and verified. */
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AnchorPlan } from '../../src/state/audit/format/anchors.ts'
import { announceAside } from '../../src/state/audit/format/announcement.ts'
import { openAuditKeys } from '../../src/state/audit/format/keys.ts'
import { ManifestSigner } from '../../src/state/audit/write/signer.ts'
import {
  newWriterName,
  type OpenTrail,
  openTrail,
  type TrailParts,
} from '../../src/state/audit/write/trail.ts'
import type { AuditEntry } from '../../src/base/contracts/records/audit.ts'
import { manualAfter } from './manual-after.ts'
import { movableClock, type MovableClock } from './movable-clock.ts'

export interface RecordingParts {
  readonly folder: string
  readonly clock?: MovableClock
  readonly anchors?: readonly AnchorPlan[]
  /** Bytes of a segment of the first writer. */
  readonly segmentBytes?: number
  /** As the version before wrote it: it announced nobody. */
  readonly unannounced?: boolean
  /** The name of the node, where several share a store. */
  readonly node?: string | undefined
}

/** A process of a service that writes its trail and signs it. */
export interface Recording {
  readonly trail: OpenTrail
  readonly signer: ManifestSigner
  readonly clock: MovableClock
  /** Another process, whose heads the first one signs. It writes one segment. */
  addWriter(): OpenTrail
  /** Writes an intent with a personal value, and its outcome. */
  change(subject: string, by?: OpenTrail): Promise<void>
  /** A second passes, and the heads are signed. */
  sign(): Promise<void>
  close(): Promise<void>
}

export const changeOf = (subject: string): AuditEntry => ({
  event: 'call.intended',
  outcome: 'pending',
  requestId: `request of ${subject}`,
  actor: { kind: 'user', subject, client: 'acme-books' },
  on: { business: 'ACME', area: 'fund-data', action: 'fund-create', method: 'POST' },
  personal: { 'actor.address': '192.0.2.7', 'on.params.memberId': `membér of ${subject}` },
})

export async function record(parts: RecordingParts): Promise<Recording> {
  const { folder, clock = movableClock(), anchors = [], segmentBytes, unannounced = false, node } = parts
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const keys = await openAuditKeys(folder)
  const plan = { folder, durability: 'disk', timeout: 30_000, retention: undefined, anchors } as const
  const recorder = { note: () => undefined }
  const open = (more: Pick<TrailParts, 'segmentBytes' | 'announced'> = {}): OpenTrail =>
    openTrail(plan, { clock, recorder, bodyKey: keys.bodyKey, node, ...more })
  const name = (): string => newWriterName(clock.now())
  const trails: OpenTrail[] = []
  const own = () => trails[0] && { writer: trails[0].writer, ...trails[0].head }
  const durable = true
  const { after } = manualAfter()
  const signer = await ManifestSigner.open({ folder, keys, clock, recorder, anchors, durable, own, after })
  const announced = unannounced ? undefined : await signer.announce(name())
  const trail = open({ announced, ...(segmentBytes !== undefined && { segmentBytes }) })
  trails.push(trail)
  const sign = async (): Promise<void> => {
    for (const each of trails) if (each.head.seq > 0) signer.report({ writer: each.writer, ...each.head })
    clock.advance(1000)
    await signer.sign()
  }
  return {
    ...{ trail, signer, clock, sign },
    addWriter: () => {
      const time = new Date(clock.now()).toISOString()
      const another = open({ announced: unannounced ? undefined : announceAside(name(), time, keys) })
      trails.push(another)
      return another
    },
    change: async (subject, by = trail) => {
      const intended = changeOf(subject)
      const intent = await by.require(intended)
      const { requestId, actor, on } = intended
      await by.require({ event: 'call.settled', outcome: 'success', requestId, intent, actor, on })
    },
    close: async () => {
      for (const each of trails) await each.close()
      await sign()
      await signer.close()
    },
  }
}

export const manifestOf = (folder: string): string => join(folder, 'manifest.jsonl')

export const linesIn = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n')

/** Writes whole lines. */
export const writeLines = (path: string, lines: readonly string[]): void =>
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))

export const edit = (path: string, change: (lines: string[]) => readonly string[]): void =>
  writeLines(path, change(linesIn(path)))
