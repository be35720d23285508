import { type Problem, Problems } from '../config/problems.ts'
import type { Client } from '../contracts/people.ts'
import type { Entry, Page } from '../contracts/store.ts'
import { newSecret } from '../kernel/ids.ts'
import { compileClient, toClient, toClientRecord } from './compile-records.ts'
import { hashSecret } from './hasher.ts'
import { type Holdings, holdingsOf, type Loss, lossesBetween, mayHold } from './holdings.ts'
import {
  alreadyThere,
  type ChangesOf,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
  foundUnlessConfigured,
  type ListedPage,
  merged,
  missingText,
  pageOf,
  planChange,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
  planRemoval,
  refuseTaken,
  type UnshownSecret,
} from './editing.ts'
import { problemsAt, readRecord, writtenForm } from './read-records.ts'
import type { FoundRecord } from './record-editor.ts'
import { referable } from './references.ts'
import { type ClientRecord, clientRecordSchema } from './schema.ts'
import { announce, CLIENT, liveSecrets, readStoredClient, type StoredClient } from './stored-directory.ts'

/** A client as an operator writes it, without a secret: that is generated. */
export interface WrittenClient {
  readonly id: string
  readonly kind: string
  readonly [key: string]: unknown
}

/** A client, and where it stands. */
export interface FoundClient extends FoundRecord<ClientRecord> {
  /** How many secrets are valid now. */
  readonly validSecrets: number
  /** When the old secret of a rotation ends, in milliseconds since the epoch; undefined without a rotation. */
  readonly oldSecretEndsAt: number | undefined
}

interface ClientChange {
  readonly before: StoredClient
  readonly after: StoredClient
  readonly losses: readonly Loss[]
  readonly warnings?: readonly Problem[]
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

  /** Refuses a client that has problems, or an id that is taken. Its secret is generated. */
  async planAdd(written: WrittenClient): Promise<PlannedAdd<ClientRecord>> {
    this.#refuseConfigured(written.id)
    const secret = written.kind === 'public' ? undefined : newSecret()
    const secrets = secret === undefined ? [] : [hashSecret(secret)]
    const problems = new Problems()
    const record = await this.#read({ ...written, secrets }, problems)
    const { id } = record
    if ((await this.#parts.store.find(CLIENT, id)) !== undefined) throw alreadyThere('client', id)
    const value: StoredClient = { record, ends: {} }
    return {
      ...{ record, warnings: problems.list },
      ...(secret !== undefined && {
        unshown: { secret, client: this.#ofStore({ key: id, value, version: 0 }) },
      }),
      commit: async () => {
        if (!(await this.#parts.store.create(CLIENT, id, { value }))) throw alreadyThere('client', id)
        await announce(this.#parts, { client: id })
        return secret
      },
    }
  }

  /**
   * While it is disabled, all requests of the client are refused; its access tokens, refresh tokens and codes end. May be
   * disabled again.
   */
  planSwitch(id: string, disabled: boolean): Promise<PlannedChange> {
    return this.#planStep(id, ({ record, ends }) => ({ record: { ...record, disabled }, ends }))
  }

  /**
   * Removes the client, and ends what it holds, consents too: its id may be given to another one. One that the configuration
   * hides holds nothing if it is disabled.
   */
  async planRemoval(id: string): Promise<PlannedStep<true>> {
    const entry = await foundUnlessConfigured(this.#parts.store, this.#at(id), () =>
      this.#refuseConfigured(id),
    )
    const isHidden = this.#parts.configured.clients.has(id)
    const holds = !isHidden || mayHold(readStoredClient(entry.value).record)
    const { version, record } = await this.show(id)
    return planRemoval(this.#parts, {
      ...{ at: { kind: CLIENT, entry }, announced: { client: id }, via: 'removal of the client' },
      shown: { version, written: writtenForm(clientRecordSchema, record) },
      losses: holds ? [{ tokens: { client: id }, consents: true }] : [],
    })
  }

  /**
   * A new secret, which is valid everywhere when the commit resolves with it. The old one stays valid for `overlap`
   * milliseconds. While two secrets are valid, only an overlap of 0 is accepted, which ends both.
   */
  async planSecret(
    id: string,
    overlap: number,
    secret = newSecret(),
  ): Promise<PlannedStep<string> & { readonly unshown: UnshownSecret }> {
    const hash = hashSecret(secret)
    let value: StoredClient | undefined
    const step = await this.#planStep(id, (client) => (value = this.#rotated(client, hash, overlap)))
    if (value === undefined) throw new TypeError('the client was not rotated')
    const client = this.#ofStore({ key: id, value, version: 0 })
    return {
      ...{ ...step, unshown: { secret, client } },
      commit: async (exactly) => (await step.commit(exactly)) && secret,
    }
  }

  /** A change of what is written of the client. Refuses one that `add` would refuse. */
  async plan(id: string, changes: ChangesOf): Promise<PlannedChange> {
    this.#refuseConfigured(id)
    const entry = await foundEntry(this.#parts.store, this.#at(id))
    const { record: before, ends } = readStoredClient(entry.value)
    const written = writtenForm(clientRecordSchema, before)
    const problems = new Problems()
    const after = await this.#read(merged(written, changes(written)), problems)
    const losses = lossesBetween(this.#holdings(before), this.#holdings(after))
    return this.#planned(id, entry, {
      ...{ before: { record: before, ends }, after: { record: after, ends } },
      ...{ losses, warnings: problems.list },
    })
  }

  #planned(id: string, entry: Entry, { before, after, losses, warnings = [] }: ClientChange): PlannedChange {
    return planChange(this.#parts, {
      ...{ at: { kind: CLIENT, entry }, value: after, announced: { client: id }, warnings, losses },
      records: { before: before.record, after: after.record },
      written: {
        before: writtenForm(clientRecordSchema, before.record),
        after: writtenForm(clientRecordSchema, after.record),
      },
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

  async #read(written: object, problems: Problems): Promise<ClientRecord> {
    const { configured, catalogue } = this.#parts
    const record = readRecord(clientRecordSchema, written, problems)
    if (record) {
      const names = await referable(this.#parts, { businesses: record.businesses, roles: [] })
      compileClient(record, { ...configured, ...names, catalogue }, problemsAt(problems, []))
    }
    if (record === undefined || problems.failed)
      throw new DirectoryRefusal('The client has problems.', problems)
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

  /** A change of a client that is not checked anew: it may name what is gone from the configuration meanwhile. */
  async #planStep(id: string, change: (client: StoredClient) => StoredClient): Promise<PlannedChange> {
    this.#refuseConfigured(id)
    const entry = await foundEntry(this.#parts.store, this.#at(id))
    const before = readStoredClient(entry.value)
    const after = change(before)
    // Of one that is disabled already, everything ends again: it may be left of an attempt that failed half way.
    const enabled = { ...before.record, disabled: false }
    const losses = lossesBetween(this.#holdings(enabled), this.#holdings(after.record))
    return this.#planned(id, entry, { before, after, losses })
  }

  #at(id: string) {
    const at = { kind: CLIENT, key: id }
    return { ...at, missing: () => missingText(this.#parts, 'client', at) }
  }

  #refuseConfigured(id: string): void {
    refuseTaken(this.#parts, { client: id })
  }

  #ofStore({ key, value, version }: Pick<Entry, 'key' | 'value' | 'version'>): FoundClient {
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
