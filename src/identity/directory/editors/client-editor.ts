import { Problems } from '../../../base/config/problems.ts'
import type { Client } from '../../../base/contracts/people/people.ts'
import type { Entry, StoredValue } from '../../../base/contracts/records/store.ts'
import { newSecret } from '../../../base/kernel/ids.ts'
import { BY_SECRET, compileClient, methodsOf, toClient, toClientRecord } from '../records/client-rules.ts'
import {
  alreadyThere,
  DirectoryRefusal,
  type EditingParts,
  type FoundRecord,
  type PlannedAdd,
  type PlannedStep,
  referable,
  type UnshownSecret,
} from './editing.ts'
import { hashSecret } from '../hashing/hasher.ts'
import { holdingsOf, mayHold } from '../records/holdings.ts'
import { MarkableEditor } from './markable-editor.ts'
import { only, type RecordKind } from './record-editor.ts'
import type { ClientRecord } from '../records/schema.ts'
import type { RecordProblems } from '../records/read-records.ts'
import {
  CLIENT,
  isOfPerson,
  liveSecrets,
  readStoredClient,
  type StoredClient,
  type StoredSubject,
  SUBJECT,
} from '../records/stored-directory.ts'

/** A client as an operator writes it, without a secret: that is generated. */
export interface WrittenClient {
  readonly id: string
  readonly kind: string
  readonly [key: string]: unknown
}

const CLIENTS: RecordKind<ClientRecord, Client> & { readonly what: 'client' } = {
  what: 'client',
  kind: CLIENT,
  read: (value) => readStoredClient(value).record,
  configured: ({ configured }) => configured.clients,
  asRecord: toClientRecord,
  check: async (record, parts, problems, before) => {
    // It is not read back from the store (readStoredClient).
    if (record.secretPost !== undefined)
      problems.error(
        ['secretPost'],
        'is retired: write `authentication`, the methods that the client may use',
      )
    await checkMachine(record, parts, problems, before)
    const names = await referable(parts, { businesses: record.businesses, roles: [] })
    compileClient(record, { ...parts.configured, ...names, catalogue: parts.catalogue }, problems)
  },
  holdings: (record, id, { catalogue }) =>
    holdingsOf({ clients: only(id, record && toClient(record)) }, catalogue),
  free: async ({ id, kind }, { store }) => kind === 'machine' && store.remove(SUBJECT, id),
}

/** The tokens of a machine have its id as their subject, so it is no person's (RFC 9068 §5). */
async function checkMachine(
  { id, kind }: ClientRecord,
  { configured, store }: EditingParts,
  problems: RecordProblems,
  before: ClientRecord | undefined,
): Promise<void> {
  if (before !== undefined && before.kind !== kind && [before.kind, kind].includes('machine'))
    problems.error(['kind'], 'cannot change between a machine and others: add another client')
  if (before !== undefined || kind !== 'machine') return
  if (configured.usersBySubject.has(id) || (await isOfPerson(id, store)))
    problems.error(
      ['id'],
      'is, or was, the subject of a user: the tokens of this machine would be taken for theirs',
      'give it another id',
    )
}

/** Takes the id of a machine as its subject, so that no user gets it. After a crash behind it `client add` can be repeated. */
async function takeSubject({ id }: ClientRecord, { store }: EditingParts): Promise<void> {
  const owner: StoredSubject = { username: '', machine: true }
  if (await store.create(SUBJECT, id, { value: owner })) return
  if (await isOfPerson(id, store)) throw new DirectoryRefusal(`"${id}" is the subject of a user.`)
}

/** A client with keys has no secret, unless it is to authenticate by one. */
function needsSecret({ authentication, jwks, jwksUri, kind, profile }: WrittenClient): boolean {
  if (kind === 'public' || profile !== undefined) return false
  if (Array.isArray(authentication)) return BY_SECRET.some((method) => authentication.includes(method))
  return jwks === undefined && jwksUri === undefined
}

/** Clients of the store, by id. Next to the record is the time when an old secret ends. */
export class ClientEditor extends MarkableEditor<ClientRecord, Client> {
  constructor(parts: EditingParts) {
    super(CLIENTS, parts)
  }

  /** @param given a secret; without it one is generated */
  override async planAdd(written: WrittenClient, given?: string): Promise<PlannedAdd<ClientRecord>> {
    this.refuseTaken(written.id)
    const { store } = this.parts
    const secret = needsSecret(written) ? (given ?? newSecret()) : undefined
    const secrets = secret === undefined ? [] : [hashSecret(secret)]
    const problems = new Problems()
    const record = await this.read({ ...written, secrets }, problems)
    const { id } = record
    if ((await store.find(CLIENT, id)) !== undefined) throw alreadyThere('client', id)
    const value: StoredClient = { record, ends: {} }
    return {
      record,
      warnings: problems.list,
      ...(secret !== undefined && {
        unshown: { secret, client: this.ofStore({ key: id, value, version: 0 }) },
      }),
      commit: async () => {
        if (record.kind === 'machine') await takeSubject(record, this.parts)
        if (!(await store.create(CLIENT, id, { value }))) throw alreadyThere('client', id)
        await this.announce(id)
        return secret
      },
    }
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
    let rotated: StoredClient | undefined
    const step = await this.planUnchecked(
      id,
      (_record, value) => (rotated = this.#rotated(value, hash, overlap)),
    )
    if (rotated === undefined) throw new TypeError('the client was not rotated')
    return {
      ...step,
      unshown: { secret, client: this.ofStore({ key: id, value: rotated, version: 0 }) },
      commit: async (exactly) => (await step.commit(exactly)) && secret,
    }
  }

  protected override subjectsOf(): readonly string[] {
    return []
  }

  /** No client is found elsewhere. */
  protected override elsewhere(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  #rotated(value: StoredValue, hash: string, overlap: number): StoredClient {
    const { record, ends } = readStoredClient(value)
    if (record.kind === 'public') throw new DirectoryRefusal('A public client has no secret.')
    if (!methodsOf(record).some((method) => BY_SECRET.includes(method)))
      throw new DirectoryRefusal(
        'This client authenticates by its keys, not by a secret: name the methods in `authentication` first.',
      )
    const now = this.parts.clock.now()
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

  /**
   * An enabled client of the store holds what was issued to it, also where the configuration has one of the same id.
   */
  protected override isHidden(record: ClientRecord, id: string): boolean {
    return super.isHidden(record, id) && !mayHold(record)
  }

  protected override ofStore(entry: Pick<Entry, 'key' | 'value' | 'version'>): FoundRecord<ClientRecord> {
    const client = readStoredClient(entry.value)
    const now = this.parts.clock.now()
    const validSecrets = liveSecrets(client, now).length
    const oldSecretEndsAt = validSecrets > 1 ? endOf(client.ends, now) : undefined
    return { ...super.ofStore(entry), validSecrets, oldSecretEndsAt }
  }

  protected override ofConfiguration(id: string, client: Client): FoundRecord<ClientRecord> {
    return { ...super.ofConfiguration(id, client), validSecrets: client.secretHashes.length }
  }
}

/** When the old secret ends, in milliseconds since the epoch. */
const endOf = (ends: StoredClient['ends'], now: number): number => Math.max(now, ...Object.values(ends))
