import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import { meaningOf, recallKeys, rememberKeys } from './key-history.ts'
import type { ServiceKeys } from './service-keys.ts'

/**
 * Tells at boot what the keys mean (C6.3.4), and keeps them in step from then on, until `keys.close()`. Every process
 * may do it: of several that make the same key, one wins. Never rejects: what fails is noted.
 */
export async function watchKeys(
  keys: ServiceKeys,
  store: Store,
  recorder: Pick<Recorder, 'note'>,
): Promise<void> {
  await tellHistory(keys, store, recorder).catch((cause: unknown) =>
    recorder.note('warn', 'signing_keys_history_unknown', { cause: String(cause) }),
  )
  keys.watch(recorder, { tends: true, changed: (kids) => rememberKeys(kids, store) })
}

async function tellHistory(keys: ServiceKeys, store: Store, recorder: Pick<Recorder, 'note'>): Promise<void> {
  const finding = await recallKeys(keys, store)
  const meaning = meaningOf(finding, keys.folder)
  if (meaning !== undefined) recorder.note('error', `signing_keys_${finding}`, { meaning })
}
