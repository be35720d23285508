/** `postern audit verify`: whether the trail is whole (C12.4.6). */
import { join } from 'node:path'
import { BEGINNING_KIND, beginningIn, placeOfTrail, type TrailBeginning } from '../../audit/beginning.ts'
import { PUBLIC_KEY_FILE } from '../../audit/keys.ts'
import { runVerification } from '../../audit/read/read-trail.ts'
import type { Verification, VerifyProgress } from '../../audit/read/verify.ts'
import { TrailReadError } from '../../contracts/audit-query.ts'
import { cleanLine } from '../../kernel/clean-text.ts'
import { Fault } from '../../kernel/faults.ts'
import { printJson, type Terminal } from '../../operator/terminal.ts'
import { countOf } from '../../operator/text.ts'
import type { Given } from '../../operator/verb.ts'
import { isSidecar } from '../../settings/configuration.ts'
import { readStoredRecords } from '../../stores/read-store.ts'
import { StoreError } from '../../stores/store-error.ts'
import type { VERIFY } from '../tables/audit.ts'
import { type AuditedConfiguration, readAudited } from './trail-folder.ts'

/** The exit codes; those of a script that asks `if postern audit verify`. */
const WHOLE = 0
const TAMPERED = 1
const UNREADABLE = 2

const SHOWN_MS = 200

/** A line of progress, on a terminal only. Returns what takes it away. */
function showProgress({ stderr }: Terminal): { show: (progress: VerifyProgress) => void; end: () => void } {
  if (!('isTTY' in stderr) || stderr.isTTY !== true) return { show: () => undefined, end: () => undefined }
  let next = 0
  return {
    show: ({ read, size }) => {
      if (performance.now() < next) return
      next = performance.now() + SHOWN_MS
      stderr.write(`\r${Math.floor((100 * read) / Math.max(1, size))} % verified`)
    },
    end: () => void stderr.write('\r\x1b[K'),
  }
}

function* linesOf(
  verification: Verification,
  anchors: readonly string[],
  remembered: Remembered,
): Generator<string> {
  const { folder, whole, findings, found, records, segments, writers } = verification
  yield whole ? `${folder}: the trail is whole` : `${folder}: the trail was tampered with`
  for (const { file, line, what } of findings)
    yield `  ${file}${line === undefined ? '' : `:${line}`}  ${what}`
  if (found > findings.length) yield `  and ${found - findings.length} more`
  yield `  ${countOf(records, 'record')} of ${countOf(writers, 'process', 'processes')} in ${countOf(segments, 'file')}`
  if (verification.beginningAnchored) yield '  it begins as the store remembers'
  else if ('unknown' in remembered) yield `  its beginning is not anchored: ${remembered.unknown}`
  yield* proofLines(verification, anchors)
}

const withoutAnchor = (anchors: readonly string[]): string =>
  anchors.length === 0
    ? 'compared with no anchor (--anchor)'
    : `compared with no anchor, for none is in ${anchors.join(', ')}`

function* proofLines(verification: Verification, anchors: readonly string[]): Generator<string> {
  const { signedUntil, anchoredUntil, unsigned, unsignedSince, foundLate, tornValues } = verification
  const { open, erased, removed } = verification
  yield signedUntil === undefined ? '  not signed' : `  signed until ${signedUntil}`
  yield anchoredUntil === undefined
    ? `  ${withoutAnchor(anchors)}: whether everything was cut back, only an anchor tells`
    : `  anchored until ${anchoredUntil}`
  if (unsigned > 0) yield `  ${countOf(unsigned, 'record')} not signed yet, since ${unsignedSince ?? ''}`
  if (foundLate > 0)
    yield `  ${countOf(foundLate, 'record')} signed as found on the disk: of a command, of a process that was killed, or of one that waited for the end of another service`
  if (tornValues > 0)
    yield `  ${countOf(tornValues, 'personal value')} missing at the end of what a process wrote, as a power cut leaves it`
  if (open > 0)
    yield `  ${countOf(open, 'call')} without an outcome: what became of them is unknown (postern audit open)`
  if (erased > 0) yield `  ${countOf(erased, 'personal value')} erased, as the trail records`
  if (removed > 0)
    yield `  ${countOf(removed, 'file')} removed when their retention had ended, as the manifest says`
}

/** What the store remembers of a trail, or why it is not known. */
type Remembered = { readonly beginning: TrailBeginning } | { readonly unknown: string }

/** Of the trail of a configuration. The service may run meanwhile. */
async function rememberedOf({ configuration, plan }: AuditedConfiguration): Promise<Remembered> {
  const { store, data } = configuration
  if (isSidecar(configuration) || store.kind === 'memory') return { unknown: 'the store is in memory' }
  try {
    const found = await readStoredRecords(store, data, [BEGINNING_KIND], Date.now())
    const values = found?.records[BEGINNING_KIND] ?? []
    const beginning = beginningIn(values, placeOfTrail(configuration, plan.folder))
    return beginning === undefined
      ? { unknown: 'the store remembers no trail in this folder' }
      : { beginning }
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    return { unknown: `the store cannot be read: ${thrown.message}` }
  }
}

interface Options {
  readonly remembered: Remembered
  readonly anchors: readonly string[]
  readonly key: string | undefined
  readonly json: boolean
}

async function verifyAll(
  folders: readonly string[],
  { remembered, anchors, key, json }: Options,
  terminal: Terminal,
): Promise<number> {
  const verifications: Verification[] = []
  const progress = showProgress(terminal)
  try {
    for (const folder of folders) {
      const otherKeys = folders
        .filter((other) => other !== folder)
        .map((other) => join(other, PUBLIC_KEY_FILE))
      const beginning = 'beginning' in remembered ? remembered.beginning : undefined
      const order = { folder, anchors, key, otherKeys, beginning }
      verifications.push(await runVerification(order, progress.show))
    }
  } catch (thrown) {
    if (!(thrown instanceof TrailReadError)) throw thrown
    progress.end()
    terminal.stderr.write(`postern: ${cleanLine(thrown.message)}\n`)
    return UNREADABLE
  }
  progress.end()
  if (json) printJson(verifications, terminal)
  else
    for (const verification of verifications)
      for (const line of linesOf(verification, anchors, remembered))
        terminal.stdout.write(`${cleanLine(line)}\n`)
  return verifications.every(({ whole }) => whole) ? WHOLE : TAMPERED
}

export async function verify(
  { positionals, values }: Given<typeof VERIFY>,
  terminal: Terminal,
): Promise<number> {
  const own = positionals.length > 0 ? undefined : readAudited(values.config, terminal)
  const folders = own === undefined ? positionals : [own.plan.folder]
  if (folders.length === 0) return UNREADABLE
  const { anchor: anchors = [], key, json = false } = values
  const remembered: Remembered =
    own === undefined ? { unknown: 'folders were named, and no store' } : await rememberedOf(own)
  return verifyAll(folders, { remembered, anchors, key, json }, terminal)
}
