/** Trails that tests write with the real writer and the real signer, to be changed and verified. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AnchorPlan } from '../../../../src/extensions/audit/format/anchors.ts'
import { openAuditKeys } from '../../../../src/extensions/audit/format/keys.ts'
import type { OpenTrail } from '../../../../src/extensions/audit/write/trail.ts'
import { ManifestSigner } from '../../../../src/extensions/audit/write/signer.ts'
import { openTrail, type WritingTrail } from '../../../../src/extensions/audit/write/writing-trail.ts'
import type { AuditEntry } from '../../../../src/base/contracts/records/audit.ts'
import { dataFolder } from '../../../support/data-folder.ts'
import { manualAfter } from '../../../support/manual-after.ts'
import { movableClock, type MovableClock } from '../../../support/movable-clock.ts'

export interface RecordingParts {
  readonly folder: string
  readonly clock?: MovableClock
  readonly anchors?: readonly AnchorPlan[]
  /** Bytes of a segment. */
  readonly segmentBytes?: number
  /** The name of the node, where several share a store. */
  readonly node?: string | undefined
  readonly durability?: 'disk' | 'system'
  /** Whether this thread writes, as that of a command does. */
  readonly here?: boolean
  /** Called with the intents that workers have left open. */
  readonly leftOpen?: (open: number) => void
}

/** One start of a service that writes its trail and signs it. The next one goes on with both. */
export interface Recording {
  readonly trail: WritingTrail
  readonly signer: ManifestSigner
  readonly clock: MovableClock
  /** Writes an intent with a personal value, and its outcome. */
  change(subject: string, by?: OpenTrail): Promise<void>
  /** A second passes, and the last record is signed. */
  sign(): Promise<void>
  close(): Promise<void>
  /** A copy of the folder, as it stands after a kill at this moment; the trail itself is closed. */
  killed(): Promise<string>
}

export const changeOf = (subject: string): AuditEntry => ({
  event: 'call.intended',
  outcome: 'pending',
  requestId: `request of ${subject}`,
  actor: { kind: 'user', subject, client: 'acme-books' },
  on: { business: 'ACME', area: 'fund-data', action: 'fund-create', method: 'POST' },
  personal: { 'actor.address': '192.0.2.7', 'on.params.memberId': `membér of ${subject}` },
})

/** The outcome of that change. */
export const outcomeOf = (subject: string, intent: number): AuditEntry => {
  const { requestId, actor, on } = changeOf(subject)
  return { event: 'call.settled', outcome: 'success', requestId, intent, actor, on }
}

export async function record(parts: RecordingParts): Promise<Recording> {
  const { folder, clock = movableClock(), anchors = [], durability = 'disk' } = parts
  const { segmentBytes, node, here, leftOpen } = parts
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const keys = await openAuditKeys(folder)
  const recorder = { note: () => undefined }
  const { after } = manualAfter()
  const durable = durability === 'disk'
  const signer = await ManifestSigner.open({ folder, keys, clock, recorder, anchors, durable, after })
  const trail = openTrail(
    { folder, durability, timeout: 30_000 },
    { clock, recorder, bodyKey: keys.bodyKey, node, segmentBytes, here, leftOpen, from: signer.end },
  )
  signer.follow(() => trail.head)
  const close = async (): Promise<void> => {
    await trail.close()
    clock.advance(1000)
    await signer.close(trail.isWhole)
  }
  return {
    ...{ trail, signer, clock, close },
    change: async (subject, by = trail) => {
      const intent = await by.require(changeOf(subject))
      await by.require(outcomeOf(subject, intent))
    },
    sign: async () => {
      clock.advance(1000)
      await signer.sign()
    },
    killed: async () => {
      const left = await dataFolder()
      cpSync(folder, left, { recursive: true })
      await close()
      return left
    },
  }
}

/** A start that records nothing, and ends. */
export async function restarted(folder: string, clock: MovableClock): Promise<void> {
  clock.advance(10_000)
  const recording = await record({ folder, clock, here: true })
  await recording.close()
}

/** The segments of a trail, as they are named below its folder, in the order of their numbers. */
export const segmentNames = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .toSorted((a, b) => numberOf(a) - numberOf(b))

const numberOf = (name: string): number => Number(/\.(\d+)\.jsonl$/.exec(name)?.[1])

export const manifestOf = (folder: string): string => join(folder, 'manifest.jsonl')

export const linesIn = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n')

/** Writes whole lines. */
export const writeLines = (path: string, lines: readonly string[]): void =>
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))

export const edit = (path: string, change: (lines: string[]) => readonly string[]): void =>
  writeLines(path, change(linesIn(path)))
