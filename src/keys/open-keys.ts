import type { Clock } from '../kernel/clock.ts'
import { createKey, readKeyFolder } from './key-folder.ts'
import { createPrivateFolder, identifyFolder } from './private-folder.ts'
import { type KeysPlan, ServiceKeys } from './service-keys.ts'
import { SuccessorSecret } from './successor-secret.ts'

/**
 * The service's keys, made on first start and reused after. Rejects with KeyFolderError where the folder is not fit to
 * be used (T7). They change only by `watch`, `look` and `tend`.
 */
export async function openKeys(plan: KeysPlan, clock: Clock): Promise<ServiceKeys> {
  const { algorithms, folder } = plan
  await createPrivateFolder(folder)
  const found = await readKeyFolder(folder)
  const missing = algorithms.filter((algorithm) => !found.some((key) => key.algorithm === algorithm))
  const made = await Promise.all(
    missing.map((algorithm) => createKey(folder, { algorithm, generation: 1 }, clock)),
  )
  return new ServiceKeys(plan, clock, {
    keys: [...found, ...made],
    made: found.length === 0,
    secret: await SuccessorSecret.open(folder),
    identity: await identifyFolder(folder),
  })
}
