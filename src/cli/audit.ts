/** `postern audit …`: the table of its verbs. Each has a file in `audit/`. */
import { hashVerb } from './audit/hash.ts'
import { keyVerb } from './audit/key.ts'
import { commandOf } from './command.ts'

const VERBS = { hash: hashVerb, key: keyVerb }

export const auditCommand = commandOf(
  'audit',
  VERBS,
  '--config names the configuration that is served: it says where the trail is.',
)
