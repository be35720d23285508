/** All events of the audit trail (C12.3). The documentation lists the rows; a test raises each. */

/**
 * The effect of a record that cannot be written (C12.1.4):
 * - `gives`: what it records is not handed out or put in force before the record is durable; otherwise the answer is 503;
 * - `takes`: what it records takes effect at once; the record is held until it can be written;
 * - `tells`: it stops nothing.
 *
 * With `either`, the event gives or takes by what has changed.
 */
type AuditWeight = 'gives' | 'takes' | 'tells' | 'either'

interface AuditEventRow {
  readonly weight: AuditWeight
  readonly title: string
}

const gives = (title: string): AuditEventRow => ({ weight: 'gives', title })
const takes = (title: string): AuditEventRow => ({ weight: 'takes', title })
const tells = (title: string): AuditEventRow => ({ weight: 'tells', title })
const either = (title: string): AuditEventRow => ({ weight: 'either', title })

export const AUDIT_EVENTS = {
  // Calls
  'call.intended': gives('A changing call is about to be sent to the backend'),
  'call.body_ended': tells('The body of a call that was streamed has ended: its length and its HMAC'),
  'call.settled': tells('The outcome of a call that was intended'),
  'call.refused': tells('A call was refused'),
  'tunnel.opened': tells('A websocket was opened'),
  'tunnel.closed': tells('A websocket was closed'),

  // Tokens
  'token.issued': gives('Tokens were issued'),
  'token.refused': tells('Tokens were asked for and refused'),
  'token.revoked': takes('A client revoked a token'),
  'token.replayed': takes('A refresh token was used a second time; its family is ended'),
  'code.issued': gives('An authorization code was issued'),
  'code.replayed': takes('An authorization code was used a second time; what came of it is ended'),
  'authorization.refused': tells('An authorization request was refused'),

  // People
  'login.succeeded': gives('A user logged in'),
  'login.refused': tells('A login was refused'),
  'login.ended': takes('A user logged out'),
  'logout.notified': tells('A client was told that a login has ended'),
  'session.revoked': takes('A session was ended by somebody else than its user’s browser'),
  'consent.given': gives('A user allowed a client something'),
  'consent.withdrawn': takes('A user took back what a client was allowed'),
  'lockout.began': tells('Logins are delayed after failures'),
  'lockout.cleared': gives('An operator ended the delay of logins'),

  // Directory
  'client.added': gives('A client was added'),
  'client.changed': either('A client was changed'),
  'client.disabled': takes('A client was disabled'),
  'client.enabled': gives('A client was enabled'),
  'client.removed': takes('A client was removed'),
  'client.secret_rotated': gives('A client got another secret'),
  'user.added': gives('A user was added'),
  'user.changed': either('A user was changed'),
  'user.disabled': takes('A user was disabled'),
  'user.enabled': gives('A user was enabled'),
  'user.removed': takes('A user was removed'),
  'user.password_set': gives('A user got another password'),
  'user.exported': gives('The data of a person was exported'),
  'user.erased': takes('The data of a person was erased'),
  'user.link_made': gives('A link was made by which a user sets a password'),
  'business.added': gives('A business was added'),
  'business.changed': either('A business was changed'),
  'business.disabled': takes('A business was disabled'),
  'business.enabled': gives('A business was enabled'),
  'business.removed': takes('A business was removed'),
  'fund.added': gives('A fund was added'),
  'fund.changed': either('A fund was changed'),
  'fund.disabled': takes('A fund was disabled'),
  'fund.enabled': gives('A fund was enabled'),
  'fund.removed': takes('A fund was removed'),
  'role.added': gives('A role was added'),
  'role.changed': either('A role was changed'),
  'role.disabled': takes('A role was disabled'),
  'role.enabled': gives('A role was enabled'),
  'role.removed': takes('A role was removed'),

  // Service
  'configuration.reloaded': either('Another configuration is in force'),
  'configuration.refused': tells('A configuration was refused; the one before stays in force'),
  'maintenance.switched': either('An operator set or ended a maintenance switch'),
  'maintenance.began': tells('A planned maintenance window has begun'),
  'maintenance.ended': tells('A maintenance window has ended by itself'),
  'revocation.ordered': takes('An operator revoked tokens'),
  'keys.announced': tells('A signing key was published that will sign later'),
  'keys.signing': tells('A signing key signs from now on'),
  'keys.retired': tells('A signing key is not published any more'),
  'keys.compromised': takes('The signing keys were replaced at once; what the old ones signed is refused'),
  'keys.resealed': tells('The keys and secret values of a shared store were sealed with another seal'),
  'store.backed_up': tells('The store was copied to a file'),
  'store.migrated': tells('The tables of a shared store were made or changed'),
  'store.copied': tells('The store of one machine was copied into a shared one, with its keys'),
  'store.accepted': gives('An operator accepted the clock or the contents of a shared store'),
  'workers.restarted': tells('The worker processes were replaced'),
  'worker.died': tells('A worker process ended that should not have'),
  'service.started': tells('The service has started'),
  'service.stopped': tells('The service has stopped'),
  'operator.refused': tells('An operator asked for what the role does not allow'),
  'explain.asked': tells('Somebody asked for the decision about a call'),

  // The trail itself
  'audit.queried': tells('Records were asked for'),
  'audit.exported': tells('Records were exported'),
  'audit.verified': tells('The trail was verified'),
  'audit.redacted': gives('The personal values of a subject were erased'),
  'audit.trail_moved': tells('The trail of an earlier version was moved aside'),
  'audit.segment_removed': gives('A segment was removed, since its retention has ended'),
  'audit.suppressed': tells('Refusals without a proven caller that were counted, not recorded singly'),
  'writer.opened': tells('The writer of the trail began a segment'),
  'writer.closed': tells('The writer of the trail has ended'),
} as const satisfies Record<string, AuditEventRow>

export type AuditEvent = keyof typeof AUDIT_EVENTS

/** Values of a label of the metrics. */
export const AUDIT_GROUPS = ['calls', 'tokens', 'people', 'directory', 'service', 'trail'] as const

type AuditGroup = (typeof AUDIT_GROUPS)[number]

type NounOf<E> = E extends `${infer Noun}.${string}` ? Noun : never

/** The group of each event, by the part of its name before the dot. */
const GROUPS = {
  call: 'calls',
  tunnel: 'calls',
  token: 'tokens',
  code: 'tokens',
  authorization: 'tokens',
  login: 'people',
  logout: 'people',
  session: 'people',
  consent: 'people',
  lockout: 'people',
  client: 'directory',
  user: 'directory',
  business: 'directory',
  fund: 'directory',
  role: 'directory',
  configuration: 'service',
  maintenance: 'service',
  revocation: 'service',
  keys: 'service',
  store: 'service',
  workers: 'service',
  worker: 'service',
  service: 'service',
  operator: 'service',
  explain: 'service',
  audit: 'trail',
  writer: 'trail',
} as const satisfies Readonly<Record<NounOf<AuditEvent>, AuditGroup>>

const groups = new Map(
  (Object.keys(AUDIT_EVENTS) as AuditEvent[]).map((event) => [
    event,
    GROUPS[event.slice(0, event.indexOf('.')) as keyof typeof GROUPS],
  ]),
)

export const groupOf = (event: AuditEvent): AuditGroup => groups.get(event) ?? 'service'

/** Whether a record that names an intent ends it: the end of a body that was streamed does not. */
export const endsIntent = (event: string): boolean => event !== 'call.body_ended'
