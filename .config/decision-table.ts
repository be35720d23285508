import { FAULTS } from '../src/base/kernel/fault-table.ts'
import { CHECKS } from '../src/gateway/decide/order.ts'

/** The checks of the decision (C4) as a Markdown table, for src/README.md. */
export const decisionTable = (): string =>
  [
    '| Check | In `pipeline.ts` | What must hold | Else |',
    '|---|---|---|---|',
    ...CHECKS.map(({ clause, step, title, faults }) => {
      const otherwise = faults.map((code) => `${FAULTS[code].status} \`${code}\``).join(', ')
      return `| ${clause} | \`${step}\` | ${title} | ${otherwise} |`
    }),
  ].join('\n')
