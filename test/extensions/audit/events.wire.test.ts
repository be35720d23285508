/** The table of events, its documentation, and the tests that raise each (C12.3). */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { AUDIT_EVENTS, type AuditEvent } from '../../../src/base/kernel/audit-events.ts'

const CALLS = 'test/extensions/audit/calls.wire.test.ts'
const TOKENS = 'test/extensions/audit/tokens.wire.test.ts'
const PEOPLE = 'test/extensions/audit/people.wire.test.ts'
/** Rows of `operate/both-ways.wire.test.ts`. */
const COMMANDS = 'test/support/operation-rows.ts'
const SERVICE = 'test/extensions/audit/service.wire.test.ts'
const QUESTIONS = 'test/extensions/audit/questions.wire.test.ts'
const TRAIL = 'test/extensions/audit/trail.test.ts'
const UPGRADE = 'test/interop/upgrade.test.ts'

/** The file of tests that raises an event. Whoever adds a row to the table adds one here. */
const RAISED: Readonly<Record<AuditEvent, string>> = {
  'call.intended': CALLS,
  'call.body_ended': 'test/extensions/audit/bodies.wire.test.ts',
  'call.settled': CALLS,
  'call.refused': CALLS,
  'tunnel.opened': CALLS,
  'tunnel.closed': CALLS,
  'token.issued': TOKENS,
  'token.refused': TOKENS,
  'token.revoked': TOKENS,
  'token.replayed': TOKENS,
  'code.issued': TOKENS,
  'code.replayed': TOKENS,
  'authorization.refused': TOKENS,
  'login.succeeded': PEOPLE,
  'login.refused': PEOPLE,
  'login.ended': PEOPLE,
  'logout.notified': 'test/extensions/logout/sender.test.ts',
  'session.revoked': PEOPLE,
  'consent.given': PEOPLE,
  'consent.withdrawn': PEOPLE,
  'lockout.began': PEOPLE,
  'lockout.cleared': SERVICE,
  'client.added': COMMANDS,
  'client.changed': COMMANDS,
  'client.disabled': COMMANDS,
  'client.enabled': COMMANDS,
  'client.removed': COMMANDS,
  'client.secret_rotated': COMMANDS,
  'user.added': COMMANDS,
  'user.changed': COMMANDS,
  'user.disabled': COMMANDS,
  'user.enabled': COMMANDS,
  'user.removed': COMMANDS,
  'user.password_set': COMMANDS,
  'user.link_made': COMMANDS,
  'user.exported': 'test/operate/personal-data.wire.test.ts',
  'user.erased': 'test/operate/personal-data.wire.test.ts',
  'business.added': COMMANDS,
  'business.changed': COMMANDS,
  'business.disabled': COMMANDS,
  'business.enabled': COMMANDS,
  'business.removed': COMMANDS,
  'fund.added': COMMANDS,
  'fund.changed': COMMANDS,
  'fund.disabled': COMMANDS,
  'fund.enabled': COMMANDS,
  'fund.removed': COMMANDS,
  'role.added': COMMANDS,
  'role.changed': COMMANDS,
  'role.disabled': COMMANDS,
  'role.enabled': COMMANDS,
  'role.removed': COMMANDS,
  'configuration.reloaded': SERVICE,
  'configuration.refused': SERVICE,
  'maintenance.switched': SERVICE,
  'maintenance.began': SERVICE,
  'maintenance.ended': SERVICE,
  'revocation.ordered': SERVICE,
  'keys.announced': 'test/serve/parts/key-events.test.ts',
  'keys.signing': SERVICE,
  'keys.retired': 'test/serve/parts/key-events.test.ts',
  'keys.compromised': 'test/support/further-rows.ts',
  'keys.resealed': 'test/extensions/postgres/keys-commands.test.ts',
  'store.backed_up': 'test/extensions/audit/recorded-acts.test.ts',
  'store.migrated': 'test/extensions/postgres/commands.test.ts',
  'store.copied': 'test/extensions/postgres/store-copy.test.ts',
  'store.accepted': 'test/extensions/postgres/jumped-clock.interop.test.ts',
  'workers.restarted': SERVICE,
  'worker.died': SERVICE,
  'service.started': SERVICE,
  'service.stopped': SERVICE,
  'operator.refused': 'test/operate/named-operators.wire.test.ts',
  'explain.asked': 'test/operate/past-calls.wire.test.ts',
  'audit.queried': QUESTIONS,
  'audit.exported': QUESTIONS,
  'audit.verified': QUESTIONS,
  'audit.redacted': COMMANDS,
  'audit.segment_removed': 'test/extensions/audit/redact.test.ts',
  'audit.trail_moved': UPGRADE,
  'audit.suppressed': 'test/extensions/audit/refusals.wire.test.ts',
  'writer.opened': TRAIL,
  'writer.closed': TRAIL,
}

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')

describe('C12.3 events', () => {
  it('are listed here, and nothing else', () => {
    expect(Object.keys(RAISED).toSorted()).toEqual(Object.keys(AUDIT_EVENTS).toSorted())
  })

  it.each(Object.entries(RAISED))('%s is raised by %s', (event, file) => {
    expect(read(file)).toContain(event)
  })

  it('are documented, each with its weight', () => {
    const page = read('src/extensions/audit/protocol.md')
    for (const [event, { weight }] of Object.entries(AUDIT_EVENTS))
      expect(page).toMatch(new RegExp(`\\| \`${event.replace('.', '\\.')}\` +\\|.*\\| ${weight} +\\|`))
  })
})
