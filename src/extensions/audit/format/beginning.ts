/**
 * The beginning of a trail, as a record of the store remembers it (C12.4.5): so it shows where somebody removes all that a
 * trail has, and another one begins in its folder.
 */
import { open } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { isShared, type Store, type StoredValue } from '../../../base/contracts/records/store.ts'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import { formerFolder, isFormer, readOwnFormerManifest } from './former.ts'
import { MANIFEST_FILE, readManifestLine } from './manifest.ts'

/** The kind of the records; each trail of a store has one. */
export const BEGINNING_KIND = 'audit_trail'

/** Milliseconds until the store is asked again, where it could not be. */
const RETRY = 30_000

/** Where a trail is. In a store that several nodes share, each has its own. */
interface TrailPlace {
  /**
   * The name of the host and the address that the node listens at: containers that share a network have one name. Empty where
   * the store is of one machine.
   */
  readonly host: string
  readonly folder: string
}

export interface TrailBeginning {
  /** The hash of the first line of its manifest. */
  readonly hash: string
  /** When that was signed. */
  readonly signed: string
}

/** A trail that the store remembers in another folder of this host. Nobody knows whether it is still there. */
export interface FormerTrail extends TrailBeginning {
  readonly folder: string
}

/** The parts of a configuration that decide the place of its trail. */
interface PlacedNode {
  readonly store: { readonly kind: string }
  readonly server: { readonly listen: string }
  /** Its folder, if the configuration names one. */
  readonly audit?: { readonly folder?: string | undefined }
}

export const placeOfTrail = ({ store, server }: PlacedNode, folder: string): TrailPlace => ({
  host: isShared(store) ? `${hostname()} ${server.listen}` : '',
  // `POSTERN_DATA` may be relative.
  folder: resolve(folder),
})

export const beginningKey = ({ host, folder }: TrailPlace): string => `${host}:${folder}`

/** The beginning that a store remembers of a trail: among the values of all records of the kind. */
function beginningIn(
  values: readonly StoredValue[],
  { host, folder }: TrailPlace,
): TrailBeginning | undefined {
  const value = values.find((each) => each['host'] === host && each['folder'] === folder)
  return value && { hash: String(value['hash']), signed: String(value['signed']) }
}

/**
 * The trails of former places, whose records belong to this one: its data was copied or moved here, or its trail has another
 * folder now. Where the configuration names the folder, one that is still in its own is left out: it was meant to stay there.
 */
async function formerTrails(
  values: readonly StoredValue[],
  { host, folder }: TrailPlace,
  isNamed: boolean,
): Promise<readonly FormerTrail[]> {
  const former = values
    .filter((each) => each['host'] === host && each['folder'] !== folder)
    .map((each) => ({
      folder: String(each['folder']),
      hash: String(each['hash']),
      signed: String(each['signed']),
    }))
  if (!isNamed) return former
  const isThere = await Promise.all(
    former.map(async ({ folder: other, hash }) => {
      const found = await Promise.all([readBeginning(other), formerBeginning(other)]).catch(() => [])
      return found.some((each) => each?.hash === hash)
    }),
  )
  return former.filter((_, index) => isThere[index] !== true)
}

/** The first line of a trail's manifest; undefined if it has none, or not that one. Rejects with the system's error. */
async function readBeginning(folder: string): Promise<TrailBeginning | undefined> {
  await using file = await open(join(folder, MANIFEST_FILE))
  for await (const text of file.readLines()) {
    const line = readManifestLine(text)
    return line?.n === 1 ? { hash: line.hash, signed: line.time } : undefined
  }
  return undefined
}

/**
 * The beginning of the trail of an earlier version that is kept in a trail's folder, if the key of that folder has signed it. Rejects
 * with the system's error.
 */
async function formerBeginning(folder: string): Promise<{ readonly hash: string } | undefined> {
  const former = formerFolder(folder) ?? (isFormer(folder) ? folder : undefined)
  if (former === undefined) return undefined
  try {
    return (await readOwnFormerManifest(former, folder))?.first
  } catch (thrown) {
    if (thrown instanceof KeyError) return undefined
    throw thrown
  }
}

/**
 * Lets the store remember the beginning of a trail, if it does not yet, or if it remembers that of the earlier version whose trail
 * was moved aside here. Resolves with what it remembers, if that is not the beginning that the trail has. Rejects with Fault
 * `identity_unavailable` or the system's error.
 */
async function anchorBeginning(
  store: Pick<Store, 'find' | 'create' | 'replace'>,
  place: TrailPlace,
): Promise<TrailBeginning | undefined> {
  const key = beginningKey(place)
  const own = await readBeginning(place.folder)
  const known = await store.find(BEGINNING_KIND, key)
  const earlier = (await formerBeginning(place.folder))?.hash
  const value = { ...place, ...own, ...(earlier !== undefined && { earlier }) }
  if (known === undefined && own !== undefined) await store.create(BEGINNING_KIND, key, { value })
  const remembered = known && beginningIn([known.value], place)
  if (known === undefined || remembered === undefined || remembered.hash === own?.hash) return undefined
  if (own === undefined || remembered.hash !== earlier) return remembered
  await store.replace(BEGINNING_KIND, key, known.version, value)
  return undefined
}

/** The facts that a store remembers of a trail. */
export interface RememberedTrails {
  /** Undefined if it remembers no trail there. */
  readonly beginning?: TrailBeginning | undefined
  readonly former?: readonly FormerTrail[]
}

/** Reads what the store remembers of trails. `values`: those of all records of this kind. */
export const rememberedTrails = async (
  values: readonly StoredValue[],
  place: TrailPlace,
  { audit }: PlacedNode,
): Promise<RememberedTrails> => {
  // Retention may have removed the trail of the earlier version since.
  const kept = values.find((each) => each['host'] === place.host && each['folder'] === place.folder)
  const found = await formerBeginning(place.folder).catch(() => undefined)
  const isOther = ({ hash }: TrailBeginning): boolean => hash !== found?.hash && hash !== kept?.['earlier']
  const beginning = beginningIn(values, place)
  const former = await formerTrails(values, place, audit?.folder !== undefined)
  return {
    beginning: beginning && isOther(beginning) ? beginning : undefined,
    former: former.filter(isOther),
  }
}

/** Remembers the beginning of a service's trail in its store. */
export class RememberedBeginning {
  readonly #folder: string
  readonly #recorder: Pick<Recorder, 'note'>
  readonly #after: After
  #cancel: () => void = () => undefined
  #closed = false
  #find: () => Promise<RememberedTrails> = () => Promise.resolve({})
  /** The store remembers another trail in this folder: that was removed. */
  isReplaced = false

  constructor(folder: string, recorder: Pick<Recorder, 'note'>, after = systemAfter) {
    this.#folder = folder
    this.#recorder = recorder
    this.#after = after
  }

  /**
   * Compares the trail with what the store remembers, or lets it remember. Never rejects: where the store cannot be asked, or the
   * manifest cannot be read, it tries again. A store in memory forgets.
   */
  async compare(store: Pick<Store, 'find' | 'create' | 'replace' | 'list'>, node: PlacedNode): Promise<void> {
    if (node.store.kind === 'memory') return
    const place = placeOfTrail(node, this.#folder)
    this.#find = async () => {
      const values = (await store.list(BEGINNING_KIND)).map(({ value }) => value)
      return rememberedTrails(values, place, node)
    }
    try {
      const other = await anchorBeginning(store, place)
      this.isReplaced = other !== undefined
      if (other !== undefined) this.#recorder.note('error', 'audit_trail_replaced', { began: other.signed })
    } catch (cause) {
      this.#recorder.note('warn', 'audit_beginning_unknown', { cause })
      if (!this.#closed) this.#cancel = this.#after(RETRY, () => void this.compare(store, node))
    }
  }

  close(): void {
    this.#closed = true
    this.#cancel()
  }

  /** Nothing also while the store cannot be asked. */
  read(): Promise<RememberedTrails> {
    return this.#find().catch(() => ({}))
  }
}

/** In a store that several nodes share, the trail of the machine that its records come from is that of this node. */
export async function rehostBeginnings(
  store: Pick<Store, 'list' | 'create' | 'remove'>,
  node: PlacedNode,
): Promise<void> {
  for (const { key, value } of await store.list(BEGINNING_KIND)) {
    if (value['host'] !== '') continue
    const place = placeOfTrail(node, String(value['folder']))
    await store.create(BEGINNING_KIND, beginningKey(place), { value: { ...value, ...place } })
    await store.remove(BEGINNING_KIND, key)
  }
}
