import { changeRecord, type Entry, SECRET, SIGNING_KEY } from '../../base/contracts/records/store.ts'
import type { SealedText } from '../../base/contracts/people/keys.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { type Diagnosis, warning } from '../../base/kernel/diagnosis.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import type { FolderKeys } from '../../identity/keys/signing/folder-keys.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import {
  foundKeys,
  type FoundKeys,
  type KeptSecret,
  type KeyPlace,
  keysOf,
  openedOrNot,
  type Rewrapped,
  SECRET_FORM,
  type SealedTitle,
} from '../../identity/keys/signing/key-place.ts'
import type { KeyStore } from '../../operate/settings/shared-stores.ts'
import type { StoreSection } from '../../state/stores/added-kinds.ts'
import { postgresOf } from './schema.ts'
import { sealOf, Seals } from '../../identity/keys/signing/seal.ts'
import {
  keyName,
  type NewKey,
  newPrivateJwk,
  parseKeyName,
  parseSigningKey,
  type StoredKey,
} from '../../identity/keys/signing/stored-key.ts'

const SUCCESSORS = 'successors'
/** The record that distinguishes one store from another. */
export const STORE_RECORD = 'store'
const ID = 'id'

/** @throws KeyError if one of the seals is no key */
export const sealsOf = (store: StoreSection): Seals => new Seals(postgresOf(store).seal)

const stampOf = ({ value }: Entry): string => String(value['nonce'])

/**
 * Keys as sealed records of a store that several nodes share. A copy of the store alone gives no key. If several nodes
 * make the key of a generation, the first one's counts, and the others read it: so none of them leads. A key that cannot
 * be opened is never replaced.
 */
export class SealedKeys implements KeyPlace {
  readonly #store: KeyStore
  #seals: Seals
  /** The id of the store, known after the first reading. */
  #id: string | undefined

  readonly name = 'the store'
  readonly every = 750
  readonly pause = 100
  readonly secretTitle = 'secret of refresh tokens'

  constructor(store: KeyStore, seals: Seals) {
    this.#store = store
    this.#seals = seals
  }

  async open(): Promise<void> {
    await this.#storeId()
  }

  adopt(store: StoreSection): void {
    this.#seals = sealsOf(store)
  }

  async sealText(text: string, place: readonly string[]): Promise<SealedText> {
    return this.#seals.seal(text, [await this.#storeId(), ...place])
  }

  async openText(sealed: SealedText, place: readonly string[]): Promise<string | undefined> {
    return openedOrNot(this.#seals, sealed, [await this.#storeId(), ...place])
  }

  fileOf(): undefined {
    return undefined
  }

  async names(): Promise<readonly string[]> {
    return (await this.#entries()).map(({ key }) => key).sort()
  }

  /** A record that has not changed is not opened again. */
  async read(known: readonly StoredKey[]): Promise<FoundKeys> {
    const entries = await this.#entries()
    if (entries.length === 0) await this.#requireSameStore()
    const byName = new Map(known.map((key) => [key.name, key]))
    const read = await Promise.allSettled(entries.map((entry) => this.#openKey(entry, byName.get(entry.key))))
    return foundKeys(
      entries.map(({ key }) => key),
      read,
      byName,
    )
  }

  async #entries(): Promise<readonly Entry[]> {
    return (await this.#store.list(SIGNING_KEY)).filter(({ key }) => parseKeyName(key) !== undefined)
  }

  async #openKey(entry: Entry, known: StoredKey | undefined): Promise<StoredKey | undefined> {
    const stamp = stampOf(entry)
    if (known?.stamp === stamp) return known
    const parsed = parseKeyName(entry.key)
    if (parsed === undefined) return undefined
    const text = this.#seals.open(entry.value, await this.#placeOf(SIGNING_KEY, entry.key))
    try {
      return { ...(await parseSigningKey(text, parsed.algorithm)), ...parsed, name: entry.key, stamp }
    } catch (thrown) {
      throw new KeyError(
        `The signing key ${entry.key} of the store is no ${parsed.algorithm} key (${messageOf(thrown)})`,
      )
    }
  }

  async create(key: NewKey, clock: Clock): Promise<StoredKey> {
    const name = keyName(key)
    await this.put(name, JSON.stringify(await newPrivateJwk(key, clock)))
    const entry = await this.#store.find(SIGNING_KEY, name)
    const made = entry && (await this.#openKey(entry, undefined))
    if (made === undefined)
      throw new KeyError(`The signing key ${name} was removed right after it was created`)
    return made
  }

  /** Seals a private JWK. A key of that name that is there stays as it is. */
  async put(name: string, jwk: string): Promise<void> {
    const value = this.#seals.seal(jwk, await this.#placeOf(SIGNING_KEY, name))
    await this.#store.create(SIGNING_KEY, name, { value: { ...value } })
  }

  async remove(name: string): Promise<void> {
    await this.#store.remove(SIGNING_KEY, name)
  }

  async secret(known?: KeptSecret): Promise<KeptSecret> {
    const entry = await this.#store.find(SECRET, SUCCESSORS)
    if (entry !== undefined) return this.#openSecret(entry, known)
    await this.#requireSameStore()
    await this.putSecret(newSecret())
    const made = await this.#store.find(SECRET, SUCCESSORS)
    if (made === undefined)
      throw new KeyError('The secret of refresh tokens was removed right after it was created')
    return this.#openSecret(made, known)
  }

  /** The secret that is there; undefined if there is none. None is made. */
  async keptSecret(): Promise<string | undefined> {
    const entry = await this.#store.find(SECRET, SUCCESSORS)
    return entry && (await this.#openSecret(entry, undefined)).text
  }

  /** A secret that is there stays as it is. */
  async putSecret(text: string): Promise<void> {
    await this.#store.create(SECRET, SUCCESSORS, { value: await this.#sealSecret(text) })
  }

  async #openSecret(entry: Entry, known: KeptSecret | undefined): Promise<KeptSecret> {
    const stamp = stampOf(entry)
    if (known?.stamp === stamp) return known
    const text = this.#seals.open(entry.value, await this.#placeOf(SECRET, SUCCESSORS))
    if (!SECRET_FORM.test(text)) throw new KeyError('The secret of refresh tokens in the store is damaged')
    return { text, stamp }
  }

  async #sealSecret(text: string): Promise<Readonly<Record<string, unknown>>> {
    return { ...this.#seals.seal(text, await this.#placeOf(SECRET, SUCCESSORS)) }
  }

  async replaceSecret(): Promise<void> {
    const value = await this.#sealSecret(newSecret())
    await changeRecord(this.#store, SECRET, SUCCESSORS, () => value)
  }

  async rewrap(): Promise<Rewrapped> {
    const all = await this.#sealedEntries()
    const old = all.filter(({ entry }) => sealOf(entry.value) !== this.#seals.first)
    const texts = await Promise.all(
      old.map(async ({ kind, entry }) => this.#seals.open(entry.value, await this.#placeOf(kind, entry.key))),
    )
    const sealed: string[] = []
    for (const [at, { kind, entry, title }] of old.entries()) {
      const value = this.#seals.seal(texts[at] ?? '', await this.#placeOf(kind, entry.key))
      // If it fails, the record was removed or replaced meanwhile.
      if (await this.#store.replace(kind, entry.key, entry.version, { ...value })) sealed.push(title)
    }
    return { sealed, already: all.filter((one) => !old.includes(one)).map(({ title }) => title) }
  }

  /** Every record that is sealed, and how messages call it. */
  async #sealedEntries(): Promise<readonly { kind: string; title: string; entry: Entry }[]> {
    const keys = (await this.#entries()).map((entry) => ({ kind: SIGNING_KEY, title: entry.key, entry }))
    const secret = await this.#store.find(SECRET, SUCCESSORS)
    const title = this.secretTitle
    return secret === undefined ? keys : [...keys, { kind: SECRET, title, entry: secret }]
  }

  async examine(): Promise<{ readonly exists: boolean; readonly findings: readonly Diagnosis[] }> {
    const sealed = await this.#sealedEntries()
    if (sealed.length === 0)
      return { exists: false, findings: [warning('The store has no keys: the first start makes them.')] }
    const seals = sealed.map(({ title, entry }) => ({ title, seal: sealOf(entry.value) ?? '' }))
    return { exists: true, findings: this.olderSeals(seals) }
  }

  olderSeals(sealed: readonly SealedTitle[]): readonly Diagnosis[] {
    const old = Map.groupBy(sealed, ({ seal }) => seal)
    old.delete(this.#seals.first)
    return [...old].map(([seal, some]) => olderSeal(seal, some.map(({ title }) => title).join(', ')))
  }

  async #placeOf(kind: string, key: string): Promise<readonly string[]> {
    return [await this.#storeId(), kind, key]
  }

  /** It is made if there is none; of several processes that do it at once one wins. */
  async #storeId(): Promise<string> {
    if (this.#id !== undefined) return this.#id
    const id = (await this.#readStoreId()) ?? (await this.#nameStore())
    this.#id = id
    return id
  }

  async #nameStore(): Promise<string> {
    await this.#store.create(STORE_RECORD, ID, { value: { id: newSecret(ID_BYTES) } })
    const id = await this.#readStoreId()
    if (id === undefined)
      throw new KeyError('The record that names the store is damaged. Restore it from a backup.')
    return id
  }

  async #readStoreId(): Promise<string | undefined> {
    const id = (await this.#store.find(STORE_RECORD, ID))?.value['id']
    return typeof id === 'string' ? id : undefined
  }

  /** An empty store in the place of the one that was opened has lost nothing, and must get no new keys. */
  async #requireSameStore(): Promise<void> {
    if (this.#id !== undefined && (await this.#readStoreId()) !== this.#id)
      throw new KeyError(
        'The store was replaced by another one that has no keys. The keys in memory stay in use. Restore the store, or ' +
          'restart to begin with new keys.',
      )
  }
}

const ID_BYTES = 16

const olderSeal = (seal: string, titles: string): Diagnosis =>
  warning(
    `${titles}: sealed with the seal ${seal}, which is not the first. Run \`postern keys rewrap\` before you remove that seal.`,
  )

/**
 * Copies the keys and the secret of a folder to a store that nodes share, and seals them there. Those copied before
 * stay as they are. Resolves with the names of the keys, and of the secret. Rejects with KeyError if a key cannot be read, or
 * if the store has keys of its own; then nothing is written.
 */
export async function copyKeys(from: FolderKeys, to: SealedKeys): Promise<readonly string[]> {
  const keys = await keysOf(from)
  const { text: secret } = await from.secret()
  await to.open()
  const known = new Set(keys.map(({ kid }) => kid))
  const there = await keysOf(to)
  const kept = await to.keptSecret()
  if (there.some(({ kid }) => !known.has(kid)) || (kept ?? secret) !== secret)
    throw new KeyError('The store has keys of its own. Copy to one that no service has used.')
  const missing = keys.filter(({ kid }) => !there.some((key) => key.kid === kid))
  for (const { name } of missing) await to.put(name, await from.textOf(name))
  if (kept === undefined) await to.putSecret(secret)
  return [...keys.map(({ name }) => name), to.secretTitle]
}
