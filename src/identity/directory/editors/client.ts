import type { Client } from '../../../base/contracts/people/people.ts'
import type { StoredValue } from '../../../base/contracts/records/store.ts'
import { newSecret } from '../../../base/kernel/ids.ts'
import { hashSecret } from '../hashing/hasher.ts'
import { compileClient, toClient, toClientRecord, unmetDemands, usesSecret } from '../records/client-rules.ts'
import { mayHold } from '../records/holdings.ts'
import { defaultsOf, type RecordProblems } from '../records/read-records.ts'
import type { ClientForm, ClientRecord } from '../records/schema.ts'
import {
  CLIENT,
  isOfPerson,
  liveSecrets,
  readStoredClient,
  type StoredClient,
  type StoredSubject,
  SUBJECT,
} from '../records/stored-directory.ts'
import {
  DirectoryRefusal,
  type EditingParts,
  type PlannedStep,
  referable,
  type UnshownSecret,
  type Written,
} from './editing.ts'
import type { RecordEditor } from './record-editor.ts'
import { only, type RecordKind } from './record-kind.ts'

/** Also of an unknown kind, which the schema refuses. */
const OF_CUSTOMER = ['password', 'refresh_token']
/** The grants of each kind of client (C6.1.5, C6.2). */
const GRANTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['customer', OF_CUSTOMER],
  ['partner', ['authorization_code', 'refresh_token']],
  ['public', ['authorization_code', 'refresh_token']],
  ['machine', ['client_credentials']],
])

/** Clients of the store, by id. Next to the record is the time when an old secret ends. */
export const clientRecords = (form: ClientForm): RecordKind<ClientRecord, Client> => ({
  noun: 'client',
  plural: 'clients',
  kind: CLIENT,
  schema: form.schema,
  names: ['id'],
  columns: ['id', 'kind', 'source', 'state', 'secrets', 'name'],
  texts: {
    add: 'Add a client, and show its secret',
    disable:
      'Refuse all its requests and revoke its tokens, in every process within a second. Also one of the configuration',
    samples: {
      name: 'tally',
      add: "--kind customer --name Tally --business ACME --scope 'openid fund.read'",
      edit: "--scope 'openid fund.read'",
      list: '--prefix ta',
    },
  },
  marking: {
    kind: 'client',
    subjects: () => [],
    // No client is found elsewhere.
    elsewhere: () => Promise.resolve(undefined),
  },
  beside: { ends: {} },
  defaults: ({ kind, requireBinding }) => ({
    grants: GRANTS.get(kind) ?? OF_CUSTOMER,
    requirePkce: (kind === 'partner' || kind === 'public') && requireBinding !== false,
  }),
  object: ([id]) => ({ kind: 'client', id }),
  read: (value) => readStoredClient(value, defaultsOf(form.schema)).record,
  configured: ({ configured }) => configured.clients,
  asRecord: toClientRecord,
  complete: (written, _parts, _problems, drawn) => {
    const secret = needsSecret(written, form) ? (drawn ?? newSecret()) : undefined
    const secrets = secret === undefined ? [] : [hashSecret(secret)]
    return Promise.resolve({ written: { ...written, secrets }, secret })
  },
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
  create: async (record, entry, { store }) => {
    if (record.kind === 'machine') await takeSubject(record, store)
    return store.create(CLIENT, record.id, entry)
  },
  holdings: (record, id) => ({ clients: only(id, record && toClient(record, form)) }),
  // An enabled client of the store holds what was issued to it, also where the configuration has one of the same id.
  isHidden: (record, { configured }) => configured.clients.has(record.id) && !mayHold(record),
  secrets: (record, value, now) => {
    if (value === undefined) return { validSecrets: record.secrets.length }
    const client = readStoredClient(value)
    const validSecrets = liveSecrets(client, now).length
    return { validSecrets, oldSecretEndsAt: validSecrets > 1 ? endOf(client.ends, now) : undefined }
  },
  free: async ({ id, kind }, { store }) => kind === 'machine' && store.remove(SUBJECT, id),
})

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
async function takeSubject({ id }: ClientRecord, store: EditingParts['store']): Promise<void> {
  const owner: StoredSubject = { username: '', machine: true }
  if (await store.create(SUBJECT, id, { value: owner })) return
  if (await isOfPerson(id, store)) throw new DirectoryRefusal(`"${id}" is the subject of a user.`)
}

/** Members that were not checked yet. */
function needsSecret({ authentication, ...written }: Written, form: ClientForm): boolean {
  const named = Array.isArray(authentication) ? { authentication: authentication as string[] } : {}
  return usesSecret({ ...written, ...named, secrets: [] } as unknown as ClientRecord, form)
}

/**
 * A new secret, which is valid everywhere when the commit resolves with it. The old one stays valid for `overlap`
 * milliseconds. While two secrets are valid, only an overlap of 0 is accepted, which ends both.
 */
export async function planSecret(
  editor: RecordEditor<ClientRecord>,
  id: string,
  overlap: number,
  secret = newSecret(),
): Promise<PlannedStep<string> & { readonly unshown: UnshownSecret }> {
  const hash = hashSecret(secret)
  let value: StoredValue = {}
  const step = await editor.planUnchecked(id, (_record, before) => {
    const { clock, configured } = editor.parts
    const client = readStoredClient(before)
    if (authenticatesByKeys(client.record, configured.clientForm)) throw keysOnly()
    const after = rotated(client, hash, overlap, clock.now())
    value = after
    return after
  })
  return {
    ...step,
    unshown: { secret, client: editor.ofStore({ key: id, value, version: 0 }) },
    commit: async (exactly) => (await step.commit(exactly)) && secret,
  }
}

/** Also where the extension that reads those keys is missing. */
const authenticatesByKeys = (record: ClientRecord, form: ClientForm): boolean =>
  record.kind !== 'public' &&
  (!usesSecret(record, form) || (record.secrets.length === 0 && unmetDemands(record, form).length > 0))

const keysOnly = (): DirectoryRefusal =>
  new DirectoryRefusal(
    'This client authenticates by its keys, not by a secret: name the methods in `authentication` first.',
  )

/** @throws DirectoryRefusal if the client has no secret, or two that are valid */
function rotated(client: StoredClient, hash: string, overlap: number, now: number): StoredClient {
  const { record, ends } = client
  if (record.kind === 'public') throw new DirectoryRefusal('A public client has no secret.')
  const live = overlap > 0 ? liveSecrets(client, now) : []
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

/** When the old secret ends, in milliseconds since the epoch. */
const endOf = (ends: StoredClient['ends'], now: number): number => Math.max(now, ...Object.values(ends))
