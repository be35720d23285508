/** `postern status`: how a running service is (C11.5.5). */
import { EXIT } from '../operator/verb.ts'
import type { Status } from '../watch/status/status.ts'
import { callAdminApi } from './admin-commands.ts'
import { statusText } from './status-text.ts'
import { STATUS } from './tables/orders.ts'
import { commandOf } from './verbs.ts'

const EXITS = { of: ({ ready }: Status) => (ready ? EXIT.done : EXIT.failed), trouble: EXIT.failed }

export const statusCommand = commandOf(STATUS, {
  '': ({ values }, terminal) =>
    callAdminApi({ method: 'GET', path: '/status' }, values, terminal, statusText, EXITS),
})
