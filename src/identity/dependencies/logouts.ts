/** How clients learn that a login has ended (C6.3.3a): an extension tells them. Without it nobody is told. */
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Signer } from '../../base/contracts/people/keys.ts'
import type { Client, People } from '../../base/contracts/people/people.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { NewRecord, Store } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { OutboundClient } from '../keys/remote/outbound.ts'
import type { IdentityConfig } from './schema.ts'

/** The parts of a process that sends notices. */
export interface NoticeParts {
  readonly recorder: Pick<Recorder, 'note'> & Partial<Pick<Recorder, 'count'>>
  readonly audit: Pick<AuditTrail, 'note'>
  /** By the configuration in force. */
  readonly identity: () => {
    readonly people: Pick<People, 'findClient'>
    readonly signer: Signer
    readonly config: IdentityConfig
    readonly urls: { readonly issuer: string }
    readonly outbound: OutboundClient
  }
}

/** Promises reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface LogoutNotices {
  /** The members that discovery has where some client is told (C6.3.2). */
  readonly metadata: Readonly<Record<string, unknown>>
  /** Whether a client is told when a login ends. It then gets the `sid` in id_tokens. */
  readonly isNotified: (client: object) => boolean
  /** The record that is stored with the session or family of an id_token. None if the client is not told. */
  partiesOf(
    client: Client,
    subject: string,
    sid: string | undefined,
    config: IdentityConfig,
  ): readonly NewRecord[]
  /** Queues the notices of a session. To be called before its record is removed: a process that dies in between loses none. */
  endSession(sid: string): Promise<void>
  /**
   * Queues the notices of all that a user has, in any browser; of everybody if none is named. To be called before all that is
   * ended.
   * @returns what forgets whom they go to, to be called when it has ended
   */
  endSubject(subject: string | undefined): Promise<() => Promise<void>>
  /** How many notices of a user's logins still have to arrive. */
  waiting(subject: string): Promise<number>
  /**
   * Sends what this process has queued, and what others have left.
   * @returns what stops that
   */
  send(parts: NoticeParts): Promise<() => Promise<void>>
}

export type OpenLogoutNotices = (store: Store, clock: Clock) => Promise<LogoutNotices>

const nothing = (): Promise<void> => Promise.resolve()

/** Nobody is told. */
export const NO_NOTICES: LogoutNotices = {
  metadata: {},
  isNotified: () => false,
  partiesOf: () => [],
  endSession: nothing,
  endSubject: () => Promise.resolve(nothing),
  waiting: () => Promise.resolve(0),
  send: () => Promise.resolve(nothing),
}
