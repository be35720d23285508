/** `postern audit …`: the table of its verbs. Each has a file in `audit/`. */
import { find, open, show } from './audit/find.ts'
import { hash } from './audit/hash.ts'
import { key } from './audit/key.ts'
import { redact } from './audit/redact.ts'
import { verify } from './audit/verify.ts'
import { AUDIT } from './tables/audit.ts'
import { commandOf } from './verbs.ts'

export const auditCommand = commandOf(AUDIT, { find, show, open, verify, redact, hash, key })
