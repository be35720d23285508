/** Options that many commands have: which configuration, why, by whose token, and how the answer is printed. */
import { MOST_REASON } from '../../contracts/audit.ts'
import type { Options } from '../../operator/verb.ts'
import { DEFAULT_FILE } from '../command.ts'

export const JSON_ANSWER = {
  json: { type: 'boolean', help: 'Print the answer as JSON, for programs' },
} as const satisfies Options

export const CONFIG = {
  config: { type: 'string', kind: 'file', help: `The configuration. Default: ${DEFAULT_FILE}` },
} as const satisfies Options

/** Of commands that change something, or leave a record. */
export const ORDER = {
  reason: { type: 'string', help: `Why, for the log and the audit trail; at most ${MOST_REASON} bytes` },
  'admin-token': {
    ...{ type: 'string', kind: 'at-file' },
    help: 'Your own token, in place of the one in the data folder. Also POSTERN_ADMIN_TOKEN',
  },
  ...CONFIG,
} as const satisfies Options

/** Of commands that only a running service carries out. */
export const SERVICE_ORDER = {
  ...ORDER,
  'admin-url': {
    ...{ type: 'string', kind: 'url' },
    help: 'The admin listener. Default: where the running service says. Also POSTERN_ADMIN_URL',
  },
  data: {
    ...{ type: 'string', kind: 'folder' },
    help: 'The data folder of the running service, in place of a configuration that cannot be read',
  },
} as const satisfies Options
