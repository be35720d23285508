import { AUDIT_EVENTS } from '../src/base/kernel/audit-events.ts'

/** The table of the events of the audit trail, for the protocol (C12.3). */
export const auditEventTable = (): string =>
  [
    '| Event | What happened | Weight |',
    '|---|---|---|',
    ...Object.entries(AUDIT_EVENTS).map(
      ([event, { title, weight }]) => `| \`${event}\` | ${title} | ${weight} |`,
    ),
  ].join('\n')
