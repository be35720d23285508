/** `postern audit …`: the verbs that only read files. Each has a file in `audit/`; the others are operations. */
import { hash } from './audit/hash.ts'
import { key } from './audit/key.ts'
import { verify } from './audit/verify.ts'
import { AUDIT } from './tables/audit.ts'
import { commandOf } from './verbs.ts'

export const auditCommand = commandOf(AUDIT, { verify, hash, key })
