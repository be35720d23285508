/** Makes and replaces signing keys as operators order it (C6.3.4, C11.5.3): in a running service, or in a command. */
import {
  type AuditedChange,
  type Operator,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { SigningAlgorithm } from '../../base/contracts/people/people.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import { FAMILY } from '../../identity/stored/families.ts'
import { endAllFamilies } from '../../identity/stored/token-revoker.ts'
import { type After, after as systemAfter, type Clock, epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { InTurn } from '../../base/kernel/in-turn.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { keysOf, newestGeneration } from '../../identity/keys/signing/key-place.ts'
import { rememberAnnounced } from '../../identity/keys/signing/recorded-events.ts'
import type { KeysPlan } from '../../identity/keys/signing/service-keys.ts'
import { keyName, type StoredKey } from '../../identity/keys/signing/stored-key.ts'
import { rememberKeys } from '../../identity/keys/signing/watch-keys.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'

type FamilyStore = Pick<Store, 'find' | 'create' | 'replace' | 'removeBy' | 'countBy'>

/** The context of operations on signing keys, besides that of all operations. */
export interface KeyWork {
  readonly plan: KeysPlan
  /** The clock of the keys' times. */
  readonly clock: Clock
  /** The store with the families of refresh tokens; undefined if there is none yet, or as `elsewhere` says. */
  readonly store: () => Promise<FamilyStore | undefined>
  /** Whether the families are in the memory of another process, which ends them when it reads the new secret. */
  readonly elsewhere: boolean
  /** Names of keys that operators announce, which their records tell: nobody records them a second time (KeyEvents). */
  readonly announced: Set<string>
  /** Does one rotation after the other. */
  readonly inTurn: InTurn
}

interface RecordedWork extends KeyWork {
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
  readonly canRecord?: (() => Promise<void>) | undefined
  /** Lets every process that serves here take the keys into use. Rejects if one has not. */
  readonly follow: () => Promise<void>
  readonly after?: After
}

/** How long the processes of this node have to follow, in milliseconds. They try again each second. */
const FOLLOW_WITHIN = 5000

/** Why a process does not use the keys yet; undefined if all do. */
async function followed({ follow, after = systemAfter }: RecordedWork): Promise<string | undefined> {
  const late = Promise.withResolvers<never>()
  const cancel = after(FOLLOW_WITHIN, () => late.reject(new Error(`not within ${FOLLOW_WITHIN / 1000} s`)))
  try {
    await Promise.race([follow(), late.promise])
    return undefined
  } catch (thrown) {
    return `a process of this service has not taken the keys into use (${messageOf(thrown)}): it tries each second, and until then it accepts what the keys before have signed. \`keys doctor\` says what is wrong with their place`
  } finally {
    cancel()
  }
}

/** A key as an answer names it. `signsFrom`: of one that was made; seconds since the epoch. */
interface NamedKey {
  readonly name: string
  readonly file: string | undefined
  readonly signsFrom?: number
}

/** A rotation that was done, or what it would do. */
export interface RotationResult {
  readonly outcome: 'rotated' | 'previewed'
  readonly made: readonly NamedKey[]
  readonly removed: readonly NamedKey[]
  /** Families of refresh tokens that ended; undefined if another process ends them, or they could not be ended. */
  readonly families: number | undefined
  /** Why they could not be counted or ended, and why a process has not followed. */
  readonly trouble: string | undefined
}

interface RotateOptions {
  /** Replace the keys and the secret of refresh tokens now: all that they gave is refused. */
  readonly compromised: boolean
  /** Change nothing. */
  readonly preview: boolean
}

/** Rejects as KeyPlace does, and with Fault `audit_unavailable`. */
export const rotateKeys = (
  work: RecordedWork,
  { compromised, preview }: RotateOptions,
  operator: Operator,
): Promise<RotationResult> =>
  work.inTurn(async () => {
    await work.plan.place.open()
    if (preview) return previewRotation(work, compromised)
    return compromised ? replaceKeys(work, operator) : announceKeys(work, operator)
  })

const namesOf = (keys: readonly { readonly name: string }[]): string[] => keys.map(({ name }) => name)

const named = ({ place }: KeysPlan, name: string): NamedKey => ({ name, file: place.fileOf(name) })

const madeKey = (plan: KeysPlan, { name, signsFrom }: StoredKey): NamedKey => ({
  ...named(plan, name),
  signsFrom,
})

/** `ES256-3`: the next key of an algorithm. */
const nextKeyName = async ({ place }: KeysPlan, algorithm: SigningAlgorithm): Promise<string> =>
  keyName({ algorithm, generation: (await newestGeneration(place, algorithm)) + 1 })

/** `signsFrom`: seconds since the epoch. */
async function makeNextKey(
  { place }: KeysPlan,
  algorithm: SigningAlgorithm,
  signsFrom: number,
  clock: Clock,
): Promise<StoredKey> {
  const generation = (await newestGeneration(place, algorithm)) + 1
  return place.create({ algorithm, generation, signsFrom }, clock)
}

/** A key that cannot be read can be replaced nevertheless. */
async function previewRotation(work: KeyWork, compromised: boolean): Promise<RotationResult> {
  const { plan, elsewhere } = work
  const made = await Promise.all(plan.algorithms.map((algorithm) => nextKeyName(plan, algorithm)))
  const removed = compromised ? await plan.place.names() : []
  const none = elsewhere ? undefined : 0
  const { families, trouble } = compromised
    ? await onFamilies(work, async (store) => (store === undefined ? none : store.countBy(FAMILY, {})))
    : { families: 0, trouble: undefined }
  return {
    outcome: 'previewed',
    made: made.map((name) => named(plan, name)),
    removed: removed.map((name) => named(plan, name)),
    families,
    trouble,
  }
}

async function announceKeys(work: RecordedWork, operator: Operator): Promise<RotationResult> {
  const { plan, recorder, canRecord } = work
  await canRecord?.()
  // No key is made next to one that cannot be read.
  await keysOf(plan.place)
  const made: StoredKey[] = []
  for (const algorithm of plan.algorithms) made.push(await announceKey(algorithm, work, operator))
  const trouble = await followed(work)
  recorder.note('info', 'signing_keys_rotated', { made: namesOf(made), ...operator })
  return {
    outcome: 'rotated',
    made: made.map((key) => madeKey(plan, key)),
    removed: [],
    families: 0,
    trouble,
  }
}

async function announceKey(
  algorithm: SigningAlgorithm,
  work: RecordedWork,
  operator: Operator,
): Promise<StoredKey> {
  const { plan, clock, audit, announced } = work
  const id = await nextKeyName(plan, algorithm)
  announced.add(id)
  const signsFrom = epochSeconds(clock) + plan.rotation.announce
  const made = await recordTaking(
    audit,
    operator,
    { event: 'keys.announced', on: { kind: 'key', id } },
    () => makeNextKey(plan, algorithm, signsFrom, clock),
    ({ kid }) => ({ kid }),
  ).catch((thrown: unknown) => {
    // Otherwise the record of the key that the schedule makes with this name later would be left out.
    announced.delete(id)
    throw thrown
  })
  // Otherwise a service that starts later, or another node, would take it for a key that the schedule has made.
  const store = await work.store().catch(() => undefined)
  const isRemembered = store && (await rememberAnnounced(made.kid, store).catch(() => false))
  if (isRemembered === true) announced.delete(id)
  return made
}

interface ReplacedKeys extends Pick<RotationResult, 'families' | 'trouble'> {
  readonly made: readonly StoredKey[]
  readonly removed: readonly string[]
}

async function replaceKeys(work: RecordedWork, operator: Operator): Promise<RotationResult> {
  const { plan, audit, recorder } = work
  const act: AuditedChange = { event: 'keys.compromised', on: { kind: 'key' } }
  const replace = (): Promise<ReplacedKeys> => replaceAtOnce(work)
  const { made, removed, families, trouble } = await recordTaking(audit, operator, act, replace, (done) => ({
    ...(done.families !== undefined && { families: done.families }),
    made: namesOf(done.made),
    removed: [...done.removed],
  }))
  recorder.note('info', 'signing_keys_rotated', { made: namesOf(made), removed, families, ...operator })
  return {
    outcome: 'rotated',
    made: made.map((key) => madeKey(plan, key)),
    removed: removed.map((name) => named(plan, name)),
    families,
    trouble,
  }
}

/**
 * Replaces the keys and the secret of refresh tokens, and ends everything that was issued with the old ones. The processes of
 * this node follow before it resolves, those of other nodes within a second. Families end before the keys are replaced, so
 * that a token that an attacker still gets by a refresh token is signed by a key that is removed next. If they cannot be
 * ended the keys are replaced anyway: a stolen key must not stay in use.
 */
async function replaceAtOnce(work: RecordedWork): Promise<ReplacedKeys> {
  const { plan, clock } = work
  const ended = await onFamilies(work, async (store) => store && endAllFamilies(store))
  const { place, algorithms } = plan
  const removed = await place.names()
  await place.replaceSecret()
  const made: StoredKey[] = []
  for (const algorithm of algorithms)
    made.push(await makeNextKey(plan, algorithm, epochSeconds(clock), clock))
  for (const name of removed) await place.remove(name)
  const unfollowed = await followed(work)
  // Without this, the next start would take the keys for those of another installation.
  const kids = (await keysOf(place)).map(({ kid }) => kid)
  const store = await work.store().catch(() => undefined)
  if (store !== undefined) await rememberKeys(kids, store).catch(() => undefined)
  const troubles = [ended.trouble, unfollowed].filter((trouble) => trouble !== undefined)
  return { ...ended, trouble: troubles.length === 0 ? undefined : troubles.join('; '), made, removed }
}

/** Does something with the store. If the store cannot be used, the answer says so, and nothing stops. */
async function onFamilies(
  { store }: KeyWork,
  act: (store: FamilyStore | undefined) => Promise<number | undefined>,
): Promise<Pick<RotationResult, 'families' | 'trouble'>> {
  try {
    return { families: await act(await store()), trouble: undefined }
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    return { families: undefined, trouble: messageOf(thrown) }
  }
}
