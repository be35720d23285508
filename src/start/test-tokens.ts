/** The clients of a serving process to which test tokens may be issued (C11.5.7). */
import type { Store } from '../contracts/store.ts'
import type { TestTokenAnswer, TestTokenRequest } from '../contracts/claimed-callers.ts'
import { CLIENT } from '../directory/stored-directory.ts'
import { answerTestToken } from '../identity/claimed-callers.ts'
import type { Service } from './service.ts'

/** Clients of each layer that are tried where none is named. */
const MOST_TRIED = 1000

/** Clients of the configuration in its order, then those of the store in the order of their ids. */
async function* clientsOf(
  configured: ReadonlyMap<string, unknown>,
  store: Pick<Store, 'list'>,
): AsyncGenerator<string> {
  yield* [...configured.keys()].slice(0, MOST_TRIED)
  for (const { key } of await store.list(CLIENT, { after: undefined, limit: MOST_TRIED }))
    if (!configured.has(key)) yield key
}

/** By the configuration in force. Rejects with TypeError in a sidecar. */
export async function issueTestToken(
  order: TestTokenRequest,
  { identity, parts }: Service,
  { store }: { readonly store: Pick<Store, 'list'> },
): Promise<TestTokenAnswer> {
  if (identity === undefined) throw new TypeError('a sidecar issues no tokens')
  return answerTestToken(order, () => clientsOf(parts.directory.clients, store), identity.dependencies)
}
