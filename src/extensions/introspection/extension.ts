/** Opaque tokens of a sidecar's issuer are introspected there (RFC 7662). */
import { Fault } from '../../base/kernel/faults.ts'
import type { Extension } from '../../operate/hooks/extension.ts'
import { checkIntrospection, introspectionOf, INTROSPECTION_KEYS } from './schema.ts'

export const extension = {
  settings: {
    keys: { 'issuers.*': INTROSPECTION_KEYS },
    checks: [{ needs: ['issuers'], run: checkIntrospection }],
  },
  opaqueTokens: (issuer) => {
    const introspection = introspectionOf(issuer)
    if (introspection === undefined) return undefined
    const { url, ...client } = introspection
    return {
      id: JSON.stringify(introspection),
      endpoint: url === undefined ? 'introspection_endpoint' : undefined,
      open: ({ endpoint, ...parts }) => {
        const where = url === undefined ? endpoint : () => Promise.resolve(url)
        const opening = import('./introspection.ts').then(
          ({ Introspector }) => new Introspector({ ...parts, ...client, endpoint: where }),
          (cause: unknown) => {
            throw new Fault('token_judge_unavailable', { cause, detail: 'introspection cannot be loaded' })
          },
        )
        // Each call that awaits it gets the fault. Without this, Node would also report an unhandled rejection.
        opening.catch(() => undefined)
        return {
          verify: async (token, policy) => (await opening).verify(token, policy),
          verifyLocally: async (token, policy) => (await opening).verifyLocally(token, policy),
          close: () =>
            void opening.then(
              (opened) => opened.close(),
              () => undefined,
            ),
        }
      },
    }
  },
} as const satisfies Extension
