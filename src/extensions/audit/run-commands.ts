/** `postern audit verify, hash, key`: the verbs that only read files. The others are operations. */
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { type ReadProgress, TrailReadError } from '../../base/contracts/records/audit-query.ts'
import { cleanLine } from '../../base/kernel/clean-text.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import { countOf, printJson, type Terminal } from '../../operate/operation/terminal.ts'
import type { AddedVerb, CommandParts } from '../../operate/hooks/added-command.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { readStoredRecords } from '../../state/stores/read-store.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { BEGINNING_KIND, type RememberedTrails, rememberedTrails, placeOfTrail } from './format/beginning.ts'
import { FORMER_ADVICE } from './format/former.ts'
import { bodyKeyOf, hashBody, presentAuditKeys, PUBLIC_KEY_FILE } from './format/keys.ts'
import { runVerification } from './read/read-trail.ts'
import type { TrailVerification } from './read/verify.ts'
import { type AuditPlan, planAudit } from './format/schema.ts'

/** A configuration whose trail is kept. */
interface AuditedConfiguration {
  readonly configuration: Configuration
  readonly plan: AuditPlan
}

type Work = AddedVerb['work']

/**
 * The configuration of the command, and its trail. Undefined, after the reason was written to stderr, if it has problems or keeps
 * no trail.
 */
function readAudited({ read, terminal }: CommandParts): AuditedConfiguration | undefined {
  const found = read()
  if (found === undefined) return undefined
  const { file, configuration } = found
  const plan = planAudit(configuration)
  if (plan !== undefined) return { configuration, plan }
  terminal.stderr.write(`postern: ${file}: no audit trail is kept — see \`audit.enabled\`\n`)
  return undefined
}

/** Prints the public key of the manifest (C12.4.4). */
export const printKey: Work = async ({ values }, parts) => {
  const audited = readAudited(parts)
  if (audited === undefined) return EXIT.refused
  const { publicPem } = await presentAuditKeys(audited.plan.folder)
  if (values['json'] === true) printJson({ publicKey: publicPem }, parts.terminal)
  else parts.terminal.stdout.write(publicPem)
  return EXIT.done
}

/** Prints the hash that the record of a call has of its body (C12.2.2). */
export const hash: Work = async ({ positionals: [file = ''], values }, parts) => {
  const { terminal } = parts
  const audited = readAudited(parts)
  if (audited === undefined) return EXIT.refused
  const { bodyKey } = await presentAuditKeys(audited.plan.folder)
  const hashed = hashBody(bodyKeyOf(bodyKey))
  try {
    for await (const bytes of createReadStream(file)) hashed.update(bytes as Uint8Array)
  } catch (thrown) {
    terminal.stderr.write(`postern: ${file} cannot be read (${reasonInWords(thrown)})\n`)
    return EXIT.failed
  }
  if (values['json'] === true) printJson({ file, hash: hashed.digest() }, terminal)
  else terminal.stdout.write(`${hashed.digest()}\n`)
  return EXIT.done
}

/** The exit codes; those of a script that asks `if postern audit verify`. */
const WHOLE = 0
const TAMPERED = 1
const UNREADABLE = 2

const SHOWN_MS = 200

/** A line of progress, on a terminal only. Returns what takes it away. */
function showProgress({ stderr }: Terminal): { show: (progress: ReadProgress) => void; end: () => void } {
  if (!('isTTY' in stderr) || stderr.isTTY !== true) return { show: () => undefined, end: () => undefined }
  let next = 0
  return {
    show: ({ done, total }) => {
      if (performance.now() < next) return
      next = performance.now() + SHOWN_MS
      stderr.write(`\r${Math.floor((100 * done) / Math.max(1, total))} % verified`)
    },
    end: () => void stderr.write('\r\x1b[K'),
  }
}

function* linesOf(
  verification: TrailVerification,
  anchors: readonly string[],
  remembered: Remembered,
): Generator<string> {
  const { folder, whole, findings, found, records, segments, former } = verification
  yield whole ? `${folder}: the trail is whole` : `${folder}: the trail was tampered with`
  for (const { file, line, what } of findings)
    yield `  ${file}${line === undefined ? '' : `:${line}`}  ${what}`
  if (found > findings.length) yield `  and ${found - findings.length} more`
  yield `  ${countOf(records, 'record')} in ${countOf(segments, 'file')}`
  if (verification.beginningAnchored) yield '  it begins as the store remembers'
  else if (remembered.unknown !== undefined) yield `  its beginning is not anchored: ${remembered.unknown}`
  yield* proofLines(verification, anchors)
  if (former !== undefined) yield `  ${former} is ${FORMER_ADVICE}`
}

const withoutAnchor = (anchors: readonly string[]): string =>
  anchors.length === 0
    ? 'compared with no anchor (--anchor)'
    : `compared with no anchor, for none is in ${anchors.join(', ')}`

function* proofLines(verification: TrailVerification, anchors: readonly string[]): Generator<string> {
  const { signedUntil, anchoredUntil, unsigned, unsignedSince, foundLate, tornValues } = verification
  const { open, erased, removed } = verification
  yield signedUntil === undefined ? '  not signed' : `  signed until ${signedUntil}`
  yield anchoredUntil === undefined
    ? `  ${withoutAnchor(anchors)}: whether everything was cut back, only an anchor tells`
    : `  anchored until ${anchoredUntil}`
  if (unsigned > 0) yield `  ${countOf(unsigned, 'record')} not signed yet, since ${unsignedSince ?? ''}`
  if (foundLate > 0)
    yield `  ${countOf(foundLate, 'record')} signed as found on the disk, since their process had been killed`
  if (tornValues > 0)
    yield `  ${countOf(tornValues, 'personal value')} missing at the end of what a process wrote, as a power cut leaves it`
  if (open > 0)
    yield `  ${countOf(open, 'call')} without an outcome: what became of them is unknown (postern audit open)`
  if (erased > 0) yield `  ${countOf(erased, 'personal value')} erased, as the trail records`
  if (removed > 0)
    yield `  ${countOf(removed, 'file')} removed when their retention had ended, as the manifest says`
}

/** The facts that the store remembers of a trail, and why its beginning is not known. */
interface Remembered extends RememberedTrails {
  readonly unknown?: string
}

/** Reads what the store remembers of the trail of a configuration. The service may run meanwhile. */
async function rememberedOf(
  { configuration, plan }: AuditedConfiguration,
  kinds: CommandParts['stores'],
): Promise<Remembered> {
  const { store, data } = configuration
  if (isSidecar(configuration) || store.kind === 'memory') return { unknown: 'the store is in memory' }
  try {
    const named = { config: store, data, kinds }
    const found = await readStoredRecords(named, [BEGINNING_KIND])
    const values = found?.records[BEGINNING_KIND] ?? []
    const known = await rememberedTrails(values, placeOfTrail(configuration, plan.folder), configuration)
    return known.beginning === undefined
      ? { ...known, unknown: 'the store remembers no trail in this folder' }
      : known
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
  const verifications: TrailVerification[] = []
  const progress = showProgress(terminal)
  try {
    for (const folder of folders) {
      const otherKeys = folders
        .filter((other) => other !== folder)
        .map((other) => join(other, PUBLIC_KEY_FILE))
      const { beginning, former } = remembered
      const order = { folder, anchors, key, otherKeys, beginning, ...(former && { former }) }
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

/** Whether the trail is whole (C12.4.6). */
export const verify: Work = async ({ positionals, values }, parts) => {
  const own = positionals.length > 0 ? undefined : readAudited(parts)
  const folders = own === undefined ? positionals : [own.plan.folder]
  if (folders.length === 0) return UNREADABLE
  const { anchor, key, json } = values
  const remembered: Remembered =
    own === undefined
      ? { unknown: 'folders were named, and no store' }
      : await rememberedOf(own, parts.stores)
  const options = {
    remembered,
    anchors: Array.isArray(anchor) ? anchor : [],
    key: typeof key === 'string' ? key : undefined,
    json: json === true,
  }
  return verifyAll(folders, options, parts.terminal)
}
