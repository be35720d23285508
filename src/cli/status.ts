/** `postern status`: how a running service is (C11.5.5). */
import { parseArgs } from 'node:util'
import type { Status } from '../operations/status/status.ts'
import { callAdminApi } from './admin-commands.ts'
import { type Command, EXIT } from './command.ts'
import { SERVICE_ORDER, SERVICE_ORDER_HELP } from './order-options.ts'
import { statusText } from './status-text.ts'

export const statusCommand: Command = {
  help: `Usage: postern status [--json]

  How the running service is: what is wrong first, then each part. Exit code 0: ready, 1: not ready, or no answer.

  --json                The answer of the admin API
${SERVICE_ORDER_HELP}
`,
  run(args, terminal) {
    const options = { ...SERVICE_ORDER, json: { type: 'boolean', default: false } } as const
    const { values } = parseArgs({ args: [...args], options })
    const exit = { of: ({ ready }: Status) => (ready ? EXIT.done : EXIT.failed), trouble: EXIT.failed }
    const show = (status: Status): string =>
      values.json ? `${JSON.stringify(status, null, 2)}\n` : statusText(status)
    return callAdminApi({ method: 'GET', path: '/status' }, values, terminal, show, exit)
  },
}
