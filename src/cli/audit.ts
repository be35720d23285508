/** `postern audit …`: the table of its verbs. Each has a file in `audit/`. */
import { findVerb, openVerb, showVerb } from './audit/find.ts'
import { hashVerb } from './audit/hash.ts'
import { keyVerb } from './audit/key.ts'
import { redactVerb } from './audit/redact.ts'
import { verifyVerb } from './audit/verify.ts'
import { commandOf } from './command.ts'

const VERBS = {
  ...{ find: findVerb, show: showVerb, open: openVerb },
  ...{ verify: verifyVerb, redact: redactVerb, hash: hashVerb, key: keyVerb },
}

export const auditCommand = commandOf(
  'audit',
  VERBS,
  `--config names the configuration that is served: it says where the trail is.

find, show and open read the folders DIR, if any are named: copies, or the trails of several nodes. No record of the
question is left there. Without DIR they ask the service of the configuration, by its admin API: it records who asks. While
no service runs they read the files themselves, and leave the record. Times are in UTC.`,
)
