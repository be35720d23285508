/** Verifies a whole trail (C12.4.6). It reads every file once, with bounded memory. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ReadProgress,
  TrailReadError,
  type TrailVerdict,
} from '../../../base/contracts/records/audit-query.ts'
import { reasonInWords } from '../../../base/kernel/thrown.ts'
import { type AnchorAt, readAnchors } from '../format/anchors.ts'
import type { FormerTrail, RememberedTrails, TrailBeginning } from '../format/beginning.ts'
import { FORMER_ADVICE, formerFolder, isFormer } from '../format/former.ts'
import { PUBLIC_KEY_FILE } from '../format/keys.ts'
import { isSignedLine, MANIFEST_FILE } from '../format/manifest.ts'
import { segmentName } from '../format/segment.ts'
import { type CheckedManifest, checkManifest, type Finding, TrailFindings } from './check-manifest.ts'
import { ChainCheck, TrailFacts } from './check-chain.ts'
import { type Segment, Segments, sizeOf, whyNoTrail } from '../format/segments.ts'

/** The trail to be verified, and what the store remembers of it. All others are paths. */
export interface VerifyRequest extends RememberedTrails {
  /** The folder of the trail. */
  readonly folder: string
  /** Files or logs with anchors. */
  readonly anchors?: readonly string[] | undefined
  /** The public key (PEM). Default: the one in the folder, which whoever owns the disk may have replaced. */
  readonly key?: string | undefined
  /** Public keys of other trails, whose anchors may be in the same files. */
  readonly otherKeys?: readonly string[] | undefined
}

export interface TrailVerification extends TrailVerdict {
  readonly folder: string
  /** The first thousand. */
  readonly findings: readonly Finding[]
  readonly segments: number
  /** Intents without an outcome: what became of them is unknown. */
  readonly open: number
  /** Personal values that were erased, and a record says so. */
  readonly erased: number
  /** Segments that retention has removed. */
  readonly removed: number
  /** Records behind the last signed head, and the time of the first of them. */
  readonly unsigned: number
  readonly unsignedSince: string | undefined
  /** Records that were signed when they were found, since their process had been killed. */
  readonly foundLate: number
  /** Bytes at ends of files that power cuts and failed writes have left behind. */
  readonly torn: number
  /** Personal values that a power cut has left behind without, at the end of what their process wrote. */
  readonly tornValues: number
  /** Whether the store remembers the beginning of the trail, and it is this one. */
  readonly beginningAnchored: boolean
  /** The folder of a trail of an earlier version that is kept aside here. */
  readonly former: string | undefined
  readonly lastRecord: string | undefined
}

/** Throws TrailReadError. */
export function verifyTrail(
  { folder, anchors = [], key, otherKeys = [], beginning, former = [] }: VerifyRequest,
  progress: (progress: ReadProgress) => void = () => undefined,
): TrailVerification {
  const trouble = whyNoTrail(folder) ?? (isFormer(folder) ? `${folder} is ${FORMER_ADVICE}` : undefined)
  if (trouble !== undefined) throw new TrailReadError(trouble)
  try {
    // The manifest first: a service that is writing meanwhile writes records before it signs them.
    const findings = new TrailFindings()
    const publicKey = readKey(key ?? join(folder, PUBLIC_KEY_FILE))
    const own = ownAnchors(anchors.flatMap(anchorsOf), publicKey, otherKeys.map(readKey), findings)
    const manifest = checkManifest({ folder, key: publicKey, anchors: own, findings })
    const facts = checkSegments(folder, manifest, findings, progress)
    const beginningAnchored = checkBeginning(beginning, manifest, findings)
    checkFormer(former, manifest, findings)
    return { ...reportOf(folder, manifest, facts, findings), beginningAnchored, former: formerFolder(folder) }
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown)
      throw new TrailReadError(`${folder} cannot be read: ${thrown.message}`, { cause: thrown })
    throw thrown
  }
}

/** Whether the store remembers the beginning of the trail, and the trail has it. */
function checkBeginning(
  remembered: TrailBeginning | undefined,
  { beginning }: CheckedManifest,
  findings: TrailFindings,
): boolean {
  if (remembered === undefined) return false
  if (beginning?.hash === remembered.hash) return true
  const { signed } = remembered
  const what = `the store remembers a trail here that began with a line signed at ${signed}, which is not in this one: it was removed`
  findings.add(MANIFEST_FILE, 1, what)
  return false
}

/** Records made before the data came here must be here too: a trail that begins with them has all since. */
function checkFormer(
  former: readonly FormerTrail[],
  { beginning }: CheckedManifest,
  findings: TrailFindings,
): void {
  for (const { folder, hash, signed } of former) {
    if (hash === beginning?.hash) continue
    const what = `the trail of the former place, ${folder}, is missing: the store remembers one there that began with a line signed at ${signed}. Copy it to a folder of its own, and verify that too`
    findings.add(MANIFEST_FILE, 1, what)
  }
}

function anchorsOf(file: string): readonly AnchorAt[] {
  try {
    return readAnchors(file)
  } catch (cause) {
    throw new TrailReadError(`the anchors in ${file} cannot be read (${reasonInWords(cause)})`, {
      cause,
    })
  }
}

/** The anchors that were signed with the key of the trail. */
function ownAnchors(
  anchors: readonly AnchorAt[],
  key: KeyObject,
  otherKeys: readonly KeyObject[],
  findings: TrailFindings,
): readonly AnchorAt[] {
  const own = anchors.filter((anchor) => isSignedLine(anchor, key))
  const foreign = anchors.filter(
    (anchor) => !own.includes(anchor) && !otherKeys.some((other) => isSignedLine(anchor, other)),
  )
  for (const { file, at } of foreign.slice(0, 1))
    findings.add(file, at, 'this anchor was not signed with the key of the trail')
  return own
}

function readKey(path: string): KeyObject {
  try {
    const key = createPublicKey(readFileSync(path, 'utf8'))
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    throw new TrailReadError(`the public key ${path} cannot be read (${reasonInWords(cause)})`, {
      cause,
    })
  }
  throw new TrailReadError(`the public key ${path} is no Ed25519 key`)
}

const byNumber = (a: Segment, b: Segment): number => a.number - b.number || (a.day < b.day ? -1 : 1)

function checkSegments(
  folder: string,
  manifest: CheckedManifest,
  findings: TrailFindings,
  progress: (progress: ReadProgress) => void,
): TrailFacts {
  const listed = new Segments([folder])
  const all = listed.all()
  // A start meanwhile signs a line before it makes a segment: its records are behind no end.
  const hasBegun = sizeOf(join(folder, MANIFEST_FILE)) > manifest.length + manifest.torn
  const isClosed = manifest.isClosed && !hasBegun
  const total = all.reduce((sum, { path }) => sum + sizeOf(path), 0)
  const byWriter = Map.groupBy(all.toSorted(byNumber), ({ writer }) => writer)
  const facts = new TrailFacts()
  facts.torn = manifest.torn
  let done = 0
  const parts = { listed, manifest: { ...manifest, isClosed }, findings, facts }
  const { writer } = manifest
  for (const [other, [first]] of byWriter)
    if (other !== writer && first !== undefined) findings.add(segmentName(first), 1, FOREIGN)
  if (writer !== undefined)
    new ChainCheck({
      ...parts,
      writer,
      segments: distinct(byWriter.get(writer) ?? [], findings),
      progress: (bytes) => progress({ done: (done += bytes), total }),
    }).check()
  return facts
}

const FOREIGN =
  'the manifest does not have the trail of this name: its records were put there, or the manifest was removed or replaced'

/** Each segment is made once. */
function distinct(segments: readonly Segment[], findings: TrailFindings): readonly Segment[] {
  return segments.filter((segment, at) => {
    const before = segments[at - 1]
    if (before?.number !== segment.number) return true
    findings.add(
      segmentName(segment),
      undefined,
      `the trail has another segment of that number, ${segmentName(before)}`,
    )
    return false
  })
}

/** Signing takes a second. Milliseconds in which it may fail, or the clock may jump. */
const LONGEST_UNSIGNED = 60_000

function reportOf(
  folder: string,
  manifest: CheckedManifest,
  facts: TrailFacts,
  findings: TrailFindings,
): Omit<TrailVerification, 'beginningAnchored' | 'former'> {
  const { explained, torn: tornValues, others } = facts.erasures()
  for (const { file, line, values } of others)
    findings.add(
      file,
      line,
      `personal values were erased without a record of it: ${values}, from this record on`,
    )
  const { firstUnsigned, lastRecord } = facts
  if (
    firstUnsigned !== undefined &&
    Date.parse(lastRecord ?? '') - Date.parse(firstUnsigned) > LONGEST_UNSIGNED
  )
    findings.add(
      MANIFEST_FILE,
      Math.max(1, manifest.lines),
      `records since ${firstUnsigned} are not signed: the last lines of the manifest were removed, or could not be written`,
    )
  return {
    folder,
    whole: findings.count === 0,
    findings: findings.list,
    found: findings.count,
    records: facts.records,
    segments: facts.segments,
    open: facts.open,
    erased: explained,
    removed: manifest.removed.size,
    unsigned: facts.unsigned,
    unsignedSince: firstUnsigned,
    foundLate: facts.foundLate,
    torn: facts.torn,
    tornValues,
    signedUntil: manifest.signedUntil,
    anchoredUntil: manifest.anchoredUntil,
    lastRecord,
  }
}
