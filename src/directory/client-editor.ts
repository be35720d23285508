import { Report, type Problem } from '../config/report.ts'
import type { Client } from '../contracts/people.ts'
import type { Entry, Page, StoredValue } from '../contracts/store.ts'
import { newSecret } from '../kernel/ids.ts'
import { compileClient, toClient, toClientRecord } from './compile-records.ts'
import { clientRecordSchema, type ClientRecord } from './config.ts'
import { type Holdings, holdingsOf } from './holdings.ts'
import { type ListedPage, pageOf } from './listing.ts'
import { lossesBetween } from './losses.ts'
import { type ChangesOf, type EndedLoss, merged, planChange, type PlannedChange } from './planned-change.ts'
import { problemsAt, readRecord, writtenForm } from './read-records.ts'
import type { FoundRecord } from './record-editor.ts'
import { referable } from './references.ts'
import { hashSecret } from './secret-hash.ts'
import { announce, CLIENT, liveSecrets, readStoredClient, type StoredClient } from './stored-directory.ts'
import {
  changeRecord,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
  missingText,
  refuseTaken,
  untilInForce,
} from './stored-editing.ts'

/** A client as an operator writes it, without a secret: that is generated. */
export interface WrittenClient {
  readonly id: string
  readonly kind: string
  readonly [key: string]: unknown
}

export interface AddedClient {
  readonly record: ClientRecord
  /** To be shown once, since only its hash is stored. Undefined for a public client. */
  readonly secret: string | undefined
  readonly warnings: readonly Problem[]
}

/** A client, and where it stands. */
export interface FoundClient extends FoundRecord<ClientRecord> {
  /** How many secrets are valid now. */
  readonly validSecrets: number
  /** When the old secret of a rotation ends, in milliseconds since the epoch; undefined without a rotation. */
  readonly oldSecretEndsAt: number | undefined
}

/**
 * Adds and changes clients of the store. Clients of the configuration are only listed. All methods reject with
 * DirectoryRefusal if the change is not allowed, and with Fault `identity_unavailable` if the store cannot be
 * reached.
 */
export class ClientEditor {
  readonly #parts: EditingParts

  constructor(parts: EditingParts) {
    this.#parts = parts
  }

  /** Refuses a client that has problems, or an id that is taken. */
  async add(written: WrittenClient): Promise<AddedClient> {
    this.#refuseConfigured(written.id)
    const secret = written.kind === 'public' ? undefined : newSecret()
    const secrets = secret === undefined ? [] : [hashSecret(secret)]
    const report = new Report()
    const record = await this.#read({ ...written, secrets }, report)
    const value: StoredClient = { record, ends: {} }
    if (!(await this.#parts.store.create(CLIENT, record.id, { value })))
      throw new DirectoryRefusal(`There is a client "${record.id}" already.`)
    await announce(this.#parts, { client: record.id })
    return { record, secret, warnings: report.problems }
  }

  /**
   * From now on all requests of the client are refused, and its access tokens, refresh tokens and codes are ended. In
   * force everywhere when this resolves. May be called again.
   */
  async disable(id: string): Promise<readonly EndedLoss[]> {
    await this.#change(id, ({ record, ends }) => ({ record: { ...record, disabled: true }, ends }))
    // After the announcement, so that a process that knows the rule knows the change too.
    const tokens = { client: id }
    const ended = await this.#parts.tokenRevoker.end(tokens, { order: { via: 'change of the client' } })
    await untilInForce(this.#parts)
    return [{ loss: { tokens, consents: false }, ended }]
  }

  /**
   * Removes the client, and ends what it holds, consents too: its id may be given to another one. In force everywhere when
   * this resolves.
   *
   * @param version of the record that is meant; without it, the latest
   * @returns false if another version is the latest: nothing has changed then
   */
  async remove(id: string, version?: number): Promise<boolean> {
    this.#refuseConfigured(id)
    const { store, tokenRevoker } = this.#parts
    await foundEntry(store, this.#at(id))
    if (!(await store.remove(CLIENT, id, version)) && version !== undefined) return false
    await announce(this.#parts, { client: id })
    await tokenRevoker.end({ client: id }, { consents: true })
    await untilInForce(this.#parts)
    return true
  }

  /** In force everywhere when this resolves. */
  async enable(id: string): Promise<void> {
    await this.#change(id, ({ record, ends }) => ({ record: { ...record, disabled: false }, ends }))
    await untilInForce(this.#parts)
  }

  /**
   * Resolves with a new secret, which is valid everywhere then. The old one stays valid for `overlap` milliseconds.
   * While two secrets are valid, only an overlap of 0 is accepted, which ends both.
   */
  async rotateSecret(id: string, overlap: number): Promise<string> {
    const secret = newSecret()
    await this.#change(id, (client) => this.#rotated(client, hashSecret(secret), overlap))
    await untilInForce(this.#parts)
    return secret
  }

  /** A change of what is written of the client. Refuses one that `add` would refuse. */
  async plan(id: string, changes: ChangesOf): Promise<PlannedChange> {
    this.#refuseConfigured(id)
    const entry = await foundEntry(this.#parts.store, this.#at(id))
    const { record: before, ends } = readStoredClient(entry.value)
    const written = writtenForm(clientRecordSchema, before)
    const report = new Report()
    const after = await this.#read(merged(written, changes(written)), report)
    const value: StoredClient = { record: after, ends }
    return planChange(this.#parts, {
      ...{ at: { kind: CLIENT, entry }, value, announced: { client: id }, warnings: report.problems },
      records: { before, after },
      written: { before: written, after: writtenForm(clientRecordSchema, after) },
      losses: lossesBetween(this.#holdings(before), this.#holdings(after)),
      via: 'change of the client',
    })
  }

  /** Rejects with DirectoryRefusal if neither layer has it. */
  async show(id: string): Promise<FoundClient> {
    const configured = this.#parts.configured.clients.get(id)
    if (configured !== undefined) return ofConfiguration(configured)
    return this.#ofStore(await foundEntry(this.#parts.store, this.#at(id)))
  }

  /** One page of both layers, in the order of ids. */
  async list(page: Page): Promise<ListedPage<FoundClient>> {
    const { configured, store } = this.#parts
    const { items, next } = await pageOf({ configured: configured.clients, store, kind: CLIENT }, page)
    const found = items.map((item) =>
      item.source === 'store' ? this.#ofStore(item.entry) : ofConfiguration(item.record),
    )
    return { items: found, next }
  }

  #holdings(record: ClientRecord): Holdings {
    return holdingsOf({ clients: new Map([[record.id, toClient(record)]]) }, this.#parts.catalogue)
  }

  async #read(written: object, report: Report): Promise<ClientRecord> {
    const { configured, catalogue } = this.#parts
    const record = readRecord(clientRecordSchema, written, report)
    if (record) {
      const names = await referable(this.#parts, { businesses: record.businesses, roles: [] })
      compileClient(record, { ...configured, ...names, catalogue }, problemsAt(report, []))
    }
    if (record === undefined || report.failed) throw new DirectoryRefusal('The client has problems.', report)
    return record
  }

  #rotated({ record, ends }: StoredClient, hash: string, overlap: number): StoredClient {
    if (record.kind === 'public') throw new DirectoryRefusal('A public client has no secret.')
    const now = this.#parts.clock.now()
    const live = overlap > 0 ? liveSecrets({ record, ends }, now) : []
    const [old, ...older] = live
    if (older.length > 0)
      throw new DirectoryRefusal(
        `Two secrets are valid until ${new Date(endOf(ends, now)).toISOString()}. Wait until then, or end both now with an overlap of 0s.`,
      )
    return {
      record: { ...record, secrets: [...live, hash] },
      ends: old === undefined ? {} : { [old]: now + overlap },
    }
  }

  async #change(id: string, change: (client: StoredClient) => StoredClient): Promise<void> {
    this.#refuseConfigured(id)
    await changeRecord(this.#parts, this.#at(id), (value: StoredValue) => change(readStoredClient(value)))
    await announce(this.#parts, { client: id })
  }

  #at(id: string) {
    const at = { kind: CLIENT, key: id }
    return { ...at, missing: () => missingText(this.#parts, 'client', at) }
  }

  #refuseConfigured(id: string): void {
    refuseTaken(this.#parts, { client: id })
  }

  #ofStore({ key, value, version }: Entry): FoundClient {
    const client = readStoredClient(value)
    const now = this.#parts.clock.now()
    const validSecrets = liveSecrets(client, now).length
    const oldSecretEndsAt = validSecrets > 1 ? endOf(client.ends, now) : undefined
    return { key, source: 'store', record: client.record, version, validSecrets, oldSecretEndsAt }
  }
}

function ofConfiguration(client: Client): FoundClient {
  const record = toClientRecord(client)
  const validSecrets = record.secrets.length
  const layer = { source: 'configuration', version: undefined } as const
  return { key: client.id, ...layer, record, validSecrets, oldSecretEndsAt: undefined }
}

/** When the old secret ends, in milliseconds since the epoch. */
const endOf = (ends: StoredClient['ends'], now: number): number => Math.max(now, ...Object.values(ends))
