import { Report, type Problem } from '../config/report.ts'
import type { StoredValue } from '../contracts/store.ts'
import { newSecret } from '../kernel/ids.ts'
import { compileClient } from './compile-records.ts'
import { problemsAt, readRecord } from './read-records.ts'
import { clientRecordSchema, type ClientRecord } from './config.ts'
import {
  announce,
  changeRecord,
  DirectoryRefusal,
  type EditingParts,
  recordsOf,
  refuseTaken,
  untilInForce,
} from './stored-editing.ts'
import { hashSecret } from './secret-hash.ts'
import { CLIENT, liveSecrets, readStoredClient, type StoredClient } from './stored-directory.ts'

/** As an operator writes it; the secret is made, not given. */
export interface WrittenClient {
  readonly id: string
  readonly kind: string
  readonly [key: string]: unknown
}

export interface AddedClient {
  readonly record: ClientRecord
  /** To be shown once: only its hash is kept. None for a public client. */
  readonly secret: string | undefined
  readonly warnings: readonly Problem[]
}

/** A client as a list tells it. */
export interface ListedClient {
  readonly id: string
  readonly kind: ClientRecord['kind']
  readonly name: string
  readonly source: 'configuration' | 'store'
  readonly disabled: boolean
  /** How many are good now. */
  readonly secrets: number
  /** When the old secret of a rotation ends, milliseconds since the epoch. */
  readonly oldSecretEndsAt: number | undefined
}

/** Life of the clients that stand in the store; those of the configuration are listed, and refused otherwise. */
export class ClientEditor {
  readonly #parts: EditingParts

  constructor(parts: EditingParts) {
    this.#parts = parts
  }

  /** Rejects with DirectoryRefusal if the client does not fit, or its id is taken. */
  async add(written: WrittenClient): Promise<AddedClient> {
    this.#refuseConfigured(written.id)
    const secret = written.kind === 'public' ? undefined : newSecret()
    const secrets = secret === undefined ? [] : [hashSecret(secret)]
    const report = new Report()
    const record = this.#read({ ...written, secrets }, report)
    const value: StoredClient = { record, ends: {} }
    if (!(await this.#parts.store.create(CLIENT, record.id, { value })))
      throw new DirectoryRefusal(`There is a client "${record.id}" already.`)
    await announce(this.#parts, { client: record.id })
    return { record, secret, warnings: report.problems }
  }

  /**
   * Refuses all it asks for, and ends what it holds: access tokens, refresh tokens, codes. In force everywhere when this
   * resolves. May be called again.
   */
  async disable(id: string): Promise<void> {
    await this.#change(id, ({ record, ends }) => ({ record: { ...record, disabled: true }, ends }))
    // After the announcement: who has heard of the rule has heard of the change.
    await this.#parts.tokenRevoker.end({ client: id })
    await untilInForce(this.#parts)
  }

  async enable(id: string): Promise<void> {
    await this.#change(id, ({ record, ends }) => ({ record: { ...record, disabled: false }, ends }))
    await untilInForce(this.#parts)
  }

  /**
   * Makes another secret and answers it; the one so far is good for `overlap` milliseconds more. While two are good,
   * only an overlap of 0 is taken: it ends both. When this resolves, the new one is good everywhere.
   */
  async rotateSecret(id: string, overlap: number): Promise<string> {
    const secret = newSecret()
    await this.#change(id, (client) => this.#rotated(client, hashSecret(secret), overlap))
    await untilInForce(this.#parts)
    return secret
  }

  /** Those of the configuration first. */
  async list(): Promise<readonly ListedClient[]> {
    const configured = [...this.#parts.configured.clients.values()].map(
      ({ id, kind, name, disabled, secretHashes }): ListedClient => ({
        ...{ id, kind, name, source: 'configuration', disabled },
        ...{ secrets: secretHashes.length, oldSecretEndsAt: undefined },
      }),
    )
    const stored = recordsOf(this.#parts, CLIENT)
    const listed = await Array.fromAsync(stored, ({ value }) => this.#listed(readStoredClient(value)))
    return [...configured, ...listed]
  }

  #read(written: object, report: Report): ClientRecord {
    const { configured, catalogue } = this.#parts
    const record = readRecord(clientRecordSchema, written, report)
    if (record) compileClient(record, { ...configured, catalogue }, problemsAt(report, []))
    if (record === undefined || report.failed) throw new DirectoryRefusal('The client does not fit.', report)
    return record
  }

  #rotated({ record, ends }: StoredClient, hash: string, overlap: number): StoredClient {
    if (record.kind === 'public') throw new DirectoryRefusal('A public client has no secret.')
    const now = this.#parts.clock.now()
    const live = overlap > 0 ? liveSecrets({ record, ends }, now) : []
    const [old, ...older] = live
    if (older.length > 0)
      throw new DirectoryRefusal(
        `Two secrets are good until ${new Date(endOf(ends, now)).toISOString()}. Wait until then, or end both at once with an overlap of 0s.`,
      )
    return {
      record: { ...record, secrets: [...live, hash] },
      ends: old === undefined ? {} : { [old]: now + overlap },
    }
  }

  async #change(id: string, change: (client: StoredClient) => StoredClient): Promise<void> {
    this.#refuseConfigured(id)
    const at = { kind: CLIENT, key: id, missing: `There is no client "${id}".` }
    await changeRecord(this.#parts, at, (value: StoredValue) => change(readStoredClient(value)))
    await announce(this.#parts, { client: id })
  }

  #refuseConfigured(id: string): void {
    refuseTaken(this.#parts, { client: id })
  }

  #listed(client: StoredClient): ListedClient {
    const { id, kind, name, disabled } = client.record
    const now = this.#parts.clock.now()
    const secrets = liveSecrets(client, now).length
    const oldSecretEndsAt = secrets > 1 ? endOf(client.ends, now) : undefined
    return { id, kind, name, source: 'store', disabled, secrets, oldSecretEndsAt }
  }
}

/** When the old secret ends. */
const endOf = (ends: StoredClient['ends'], now: number): number => Math.max(now, ...Object.values(ends))
