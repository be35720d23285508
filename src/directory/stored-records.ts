/**
 * The directory's records in the store: kinds, keys and shapes. They carry no index, since whoever ends what a subject
 * or a client left in the store (`removeBy`) must not remove the subject or the client with it.
 *
 * `directory_client`, by client id: a StoredClient.
 * `directory_user`, by user name: a StoredUser.
 * `directory_subject`, by subject: the user's name. Written first, and never changed: a subject is given once.
 */
import type { TSchema } from '../config/pieces.ts'
import { viewOf } from '../config/schema-view.ts'
import type { StoredValue } from '../contracts/store.ts'
import { clientRecordSchema, userRecordSchema, type ClientRecord, type UserRecord } from './config.ts'

export const CLIENT = 'directory_client'
export const USER = 'directory_user'
export const SUBJECT = 'directory_subject'

/** Each change of a record is told on this topic of the change feed: `{client}` or `{user}`, its key. */
export const DIRECTORY_TOPIC = 'directory'

/** A type alias, since an interface has no index signature and so is no StoredValue. */
export type StoredClient = {
  readonly record: ClientRecord
  /** When a secret ends, by its hash, in milliseconds since the epoch: of the old one after a rotation. */
  readonly ends: Readonly<Record<string, number>>
}

export type StoredUser = {
  readonly record: UserRecord
}

export type StoredSubject = {
  readonly username: string
}

/** What a record written by an older version does not say. */
function defaultsOf(schema: TSchema): object {
  const properties = Object.entries(viewOf(schema).properties ?? {})
  return Object.fromEntries(
    properties.flatMap(([key, { default: value }]) => (value === undefined ? [] : [[key, value]])),
  )
}

const CLIENT_DEFAULTS = defaultsOf(clientRecordSchema)
const USER_DEFAULTS = defaultsOf(userRecordSchema)

export function readStoredClient(value: StoredValue): StoredClient {
  const { record, ends } = value as StoredClient
  return { record: { ...CLIENT_DEFAULTS, ...record }, ends }
}

export function readStoredUser(value: StoredValue): StoredUser {
  return { record: { ...USER_DEFAULTS, ...(value as StoredUser).record } }
}

/** The hashes that are good now. */
export const liveSecrets = ({ record, ends }: StoredClient, now: number): readonly string[] =>
  record.secrets.filter((hash) => (ends[hash] ?? Number.POSITIVE_INFINITY) > now)
