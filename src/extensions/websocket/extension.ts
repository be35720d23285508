/** Websockets, forwarded by backends of kind `stream` (C8.1). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { BACKEND_KEYS, checkOperation, endsWithToken, isAllowed, OPERATION_KEYS } from './schema.ts'

export const extension = {
  settings: {
    keys: { 'actions.*.methods.*': OPERATION_KEYS, 'backends.*.stream': BACKEND_KEYS },
    upgrade: {
      isAllowed,
      check: checkOperation,
      open: async (config, rules, clock) => {
        const { WebsocketBackend } = await import('./websocket-backend.ts')
        return new WebsocketBackend(rules, endsWithToken(config), clock)
      },
    },
  },
} as const satisfies Extension
