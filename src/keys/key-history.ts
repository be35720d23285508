import type { Entry, Store } from '../contracts/store.ts'

/**
 * Which keys this service has signed with, as the store remembers: the folder alone cannot tell a first start from a
 * folder that was lost, or another installation's from one's own.
 */
const KIND = 'signing_keys'
const KEY = 'own'
/** Key ids remembered: years of rotations. */
const REMEMBERED = 100

/** `first`: nothing was remembered. `known`: a key of before is there. `lost`: all are new. `foreign`: none is known. */
export type KeyFinding = 'first' | 'known' | 'lost' | 'foreign'

export interface PresentKeys {
  readonly kids: readonly string[]
  /** Whether the folder had none, and they were made just now. */
  readonly made: boolean
}

type History = { readonly kids: readonly string[] }

const isHistory = (value: Readonly<Record<string, unknown>>): value is History => Array.isArray(value['kids'])

const kidsOf = (entry: Entry | undefined): readonly string[] =>
  entry !== undefined && isHistory(entry.value) ? entry.value.kids : []

/** The ids of the keys that this service has had, oldest first. */
export const rememberedKeys = async (store: Store): Promise<readonly string[]> =>
  kidsOf(await store.find(KIND, KEY))

/**
 * What the keys that are present mean, told once: they are remembered from then on. Rejects with Fault
 * `identity_unavailable` if the store can't be reached.
 */
export async function recallKeys({ kids, made }: PresentKeys, store: Store): Promise<KeyFinding> {
  const before = await rememberedKeys(store)
  await rememberKeys(kids, store)
  if (before.length === 0) return 'first'
  if (kids.some((kid) => before.includes(kid))) return 'known'
  return made ? 'lost' : 'foreign'
}

/** Adds keys to what is remembered. Called at every change of the keys, or a long-running service would forget itself. */
export async function rememberKeys(kids: readonly string[], store: Store): Promise<void> {
  for (;;) {
    const entry = await store.find(KIND, KEY)
    const before = kidsOf(entry)
    const fresh = kids.filter((kid) => !before.includes(kid))
    if (entry !== undefined && fresh.length === 0) return
    const value: History = { kids: [...before, ...fresh].slice(-REMEMBERED) }
    // Another process may be doing the same: whoever comes second reads again.
    const kept =
      entry === undefined
        ? await store.create(KIND, KEY, { value })
        : await store.replace(KIND, KEY, entry.version, value)
    if (kept) return
  }
}

/** What an operator is told at boot; undefined where there is nothing to tell. */
export const meaningOf = (finding: KeyFinding, folder: string): string | undefined =>
  MEANINGS[finding]?.replaceAll('FOLDER', folder)

const CONSEQUENCE =
  'every access token and id_token issued before is refused from now on (clients that hold a refresh token get new ' +
  'ones with it), and whoever keeps the old key set must fetch the new one. If this was not meant: stop, put the right ' +
  'folder back from a backup, and start again.'

const MEANINGS: Readonly<Record<KeyFinding, string | undefined>> = {
  first: undefined,
  known: undefined,
  lost: `The folder of the signing keys, FOLDER, was empty, though this service has signed before: it was lost, emptied or moved. New keys were made, so ${CONSEQUENCE}`,
  foreign: `The folder of the signing keys, FOLDER, holds none of the keys that this service has signed with: it is another installation's, or the store is. With these keys ${CONSEQUENCE}`,
}
