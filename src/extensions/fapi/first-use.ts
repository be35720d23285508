import { hash } from 'node:crypto'
import type { Store } from '../../base/contracts/records/store.ts'

/**
 * Whether something is used for the first time, over all nodes (C6.1.2). Kept by its SHA-256, so that no sender chooses the
 * key of a record. Rejects with Fault `identity_unavailable` if the store cannot be reached.
 * @param parts what it is, such as whose it is and its id
 * @param until milliseconds since the epoch: from then on nobody would accept it any more
 */
export const isFirstUse = (
  store: Pick<Store, 'create'>,
  kind: string,
  parts: readonly string[],
  until: number,
): Promise<boolean> =>
  store.create(kind, hash('sha256', JSON.stringify(parts), 'base64url'), { value: {}, expiresAt: until })
