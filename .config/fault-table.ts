import { type FaultRow, FAULTS } from '../src/base/kernel/fault-table.ts'

/** The faults as a Markdown table, for src/README.md. */
export const faultTable = (): string =>
  [
    '| Fault | Status | Code under `/api` | `error` of the identity endpoints | Text | Log |',
    '|---|---|---|---|---|---|',
    ...Object.entries<FaultRow>(FAULTS).map(
      ([code, { status, wire, oauth, text, level }]) =>
        `| \`${code}\` | ${status} | \`${wire}\` | \`${oauth}\` | ${text} | ${level} |`,
    ),
  ].join('\n')
