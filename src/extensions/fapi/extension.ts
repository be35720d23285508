/** FAPI 2.0 and its parts: bound tokens (DPoP), keys of clients (private_key_jwt), pushed authorization requests. */
import type { Extension } from '../../operate/hooks/extension.ts'
import { checkIdentity, CLIENT_CHECKS, CLIENT_RULES, COUNTERS, FAPI_FORMS, FAPI_KEYS } from './schema.ts'

export const extension = {
  settings: {
    keys: FAPI_KEYS,
    forms: FAPI_FORMS,
    checks: [{ needs: ['identity'], run: checkIdentity }],
    clientChecks: CLIENT_CHECKS,
    clientRules: CLIENT_RULES,
  },
  counters: COUNTERS,
  security: async () => (await import('./security.ts')).openSecurity,
} as const satisfies Extension
