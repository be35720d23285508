import { FAULTS, type FaultRow } from '../src/kernel/fault-table.ts'

/** The faults as a table for people, from the table that they are told by. Markdown. */
export const faultTable = (): string =>
  [
    '| Fault | Status | Code under `/api` | `error` of the identity endpoints | Text | Log |',
    '|---|---|---|---|---|---|',
    ...Object.entries<FaultRow>(FAULTS).map(
      ([code, { status, wire, oauth, text, level }]) =>
        `| \`${code}\` | ${status} | \`${wire}\` | \`${oauth}\` | ${text} | ${level} |`,
    ),
  ].join('\n')
