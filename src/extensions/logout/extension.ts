/** Clients are told that a login has ended (C6.3.3a). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { checkLogoutUri, CLIENT_KEYS } from './schema.ts'

export const extension = {
  settings: { keys: { 'directory.clients.*': CLIENT_KEYS }, clientChecks: [checkLogoutUri] },
  logouts: async (store, clock) => {
    const { LogoutQueue } = await import('./queue.ts')
    return new LogoutQueue(store, clock)
  },
} as const satisfies Extension
