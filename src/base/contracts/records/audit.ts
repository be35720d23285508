import type { AuditEvent } from '../../kernel/audit-events.ts'
import type { JsonObject } from '../../http/body/json.ts'

/** The most bytes, in UTF-8, of the reason that an operator gives. */
export const MOST_REASON = 500

/** `pending`: an intent, whose outcome follows in another record. */
export type AuditOutcome = 'pending' | 'success' | 'refused' | 'failed'

/** Who acted (C12.2.1). Absent members are unknown. */
export interface AuditActor {
  readonly kind: 'user' | 'client' | 'operator' | 'service' | 'anonymous'
  readonly subject?: string | undefined
  readonly client?: string | undefined
  /** The operator that was authenticated: the name of the token. A name that somebody only claims is in `claimed`. */
  readonly operator?: string | undefined
  /** A name that was not proven: `by` of an order, the caller of a call that a report-only area let through. */
  readonly claimed?: string | undefined
  /** How it came: `admin`, `cli`, `signal`, `file`, `schedule`. */
  readonly via?: string | undefined
}

/** The object of a record: that of a call, or that of an administrative act by its kind and id. */
export interface AuditObject {
  readonly business?: string | undefined
  readonly fund?: string | undefined
  readonly area?: string | undefined
  readonly action?: string | undefined
  readonly method?: string | undefined
  /** `client`, `user`, `key`, `switch`, … */
  readonly kind?: string | undefined
  readonly id?: string | undefined
  /** The family of a token, or of those that a code gives. */
  readonly family?: string | undefined
  /** The `sub` of the user that it is about, where that is not the actor. */
  readonly subject?: string | undefined
  readonly client?: string | undefined
}

export interface AuditGrant {
  readonly grant?: string | undefined
  readonly scope?: string | undefined
  readonly target?: string | undefined
  /** How the client has authenticated (RFC 7591 §2). */
  readonly method?: string | undefined
  /** The thumbprint of the key that the token is bound to (RFC 9449 §6). */
  readonly jkt?: string | undefined
}

export interface AuditCall {
  readonly version?: number | undefined
  readonly status?: number | undefined
  readonly upstreamStatus?: number | undefined
  readonly ms?: number | undefined
  readonly type?: string | undefined
  readonly bytes?: number | undefined
  /** The HMAC of the request's body (C12.2.2), base64url. */
  readonly body?: string | undefined
  /** In a report-only area: the fault that would have refused it. */
  readonly wouldRefuse?: string | undefined
}

/**
 * What is recorded of one event; the trail adds `v`, `writer`, `seq`, `time` and `hash` (C12.2.1). No member may hold a
 * token, a secret or a query. Texts are cut at 256 bytes.
 */
export interface AuditEntry {
  readonly event: AuditEvent
  readonly outcome: AuditOutcome
  /** A fault's code. */
  readonly reason?: string | undefined
  readonly requestId?: string | undefined
  readonly traceId?: string | undefined
  /** The `seq` of the intent, of this writer, that this record belongs to. */
  readonly intent?: number | undefined
  readonly actor: AuditActor
  readonly on?: AuditObject | undefined
  readonly grant?: AuditGrant | undefined
  readonly call?: AuditCall | undefined
  readonly change?: JsonObject | undefined
  /** The reason that an operator gave: at most 500 bytes. */
  readonly why?: string | undefined
  /** Personal values (C12.2.3) by their path in the record (`on.params.memberId`), which holds a hash of each. */
  readonly personal?: Readonly<Record<string, string | undefined>> | undefined
}

/** A refusal, as far as the limit of single records asks (C12.1.5). */
export interface RefusalRecord {
  readonly event: AuditEvent
  /** A fault's code, or an OAuth error. */
  readonly reason: string
  readonly address: string
  /** Set if the caller is proven: the client. */
  readonly client?: string | undefined
}

export interface BodyHash {
  update(bytes: Uint8Array): void
  /** base64url. Called once. */
  digest(): string
}

export interface RequireOptions {
  /** True if the recorded act continues without its record: a late record is then no refusal, and stays open. */
  readonly goesOn?: boolean
}

/** Writes the audit trail of this process (C12). */
export interface AuditTrail {
  /** False where no trail is kept: then nothing needs to be prepared for it. */
  readonly on: boolean
  /**
   * Records what is about to be given (C12.1.4). Resolves with the record's `seq` when it is durable.
   * Rejects with Fault `audit_unavailable` if that took longer than `audit.timeout`, or cannot be. If it becomes durable
   * later nevertheless, another record says that it was refused.
   */
  require(entry: AuditEntry, options?: RequireOptions): Promise<number>
  /**
   * Records an outcome. Resolves when the record is written, which a power cut may undo, or when that is not possible.
   * Never rejects: an outcome changes no answer.
   */
  settle(entry: AuditEntry): Promise<void>
  /**
   * Records what was taken away. Resolves when the record is written, so that no answer confirms what a killed process
   * has not recorded; or when that is not possible now: then it is logged, held, and written first later. Never
   * rejects. The value is whether it is written.
   */
  keep(entry: AuditEntry): Promise<boolean>
  /** Records what stops nothing. If it cannot be written now, it may be lost, and is counted. */
  note(entry: AuditEntry): void
  /**
   * Records a refusal, of which one caller can cause many: singly up to a limit a minute, then counted (C12.1.5). Every
   * event that anybody can cause without being let in goes through here. It stops nothing.
   * @param entry makes the record; called only if it is recorded singly
   */
  refuse(refusal: RefusalRecord, entry: () => AuditEntry): void
  /** An HMAC-SHA-256 under the key of the deployment (C12.2.2). */
  bodyHash(): BodyHash
}

export const NO_TRAIL: AuditTrail = {
  on: false,
  require: () => Promise.resolve(0),
  settle: () => Promise.resolve(),
  keep: () => Promise.resolve(false),
  note: () => undefined,
  refuse: () => undefined,
  bodyHash: () => ({ update: () => undefined, digest: () => '' }),
}
