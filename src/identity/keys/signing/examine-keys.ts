import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import type { Store } from '../../../base/contracts/records/store.ts'
import { type Diagnosis, failing, fine, warning } from '../../../base/kernel/diagnosis.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import { keysOf, titleOf } from './key-place.ts'
import { scheduleKeys } from './schedule.ts'
import type { KeysPlan } from './service-keys.ts'
import type { StoredKey } from './stored-key.ts'
import { rememberedKeys } from './watch-keys.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'

/**
 * Everything that is wrong with the keys, or soon will be. Changes nothing. `now` in seconds since the epoch.
 * Without a `store`, the keys are not compared with the history. Rejects with Fault `identity_unavailable` if the
 * store cannot be reached, and never with KeyError: that becomes a finding.
 */
export async function examineKeys(
  plan: KeysPlan,
  now: number,
  store: Store | undefined,
): Promise<readonly Diagnosis[]> {
  const { place } = plan
  try {
    const { exists, findings } = await place.examine()
    if (!exists) return findings
    const keys = await keysOf(place)
    return [
      ...plan.algorithms.flatMap((algorithm) => examineAlgorithm(algorithm, keys, plan, now)),
      ...findings,
      ...(await examineHistory(keys, store)),
    ]
  } catch (thrown) {
    if (!(thrown instanceof KeyError)) throw thrown
    return [failing(messageOf(thrown))]
  }
}

function examineAlgorithm(
  algorithm: SigningAlgorithm,
  all: readonly StoredKey[],
  { rotation, place }: KeysPlan,
  now: number,
): readonly Diagnosis[] {
  const keys = all.filter((key) => key.algorithm === algorithm)
  const signing = scheduleKeys(keys, rotation, now).find(({ state }) => state === 'signing')?.key
  if (signing === undefined) return [warning(`There is no ${algorithm} key: the next start creates one.`)]
  const title = titleOf(place, signing.name)
  const findings = [fine(`${title} signs ${algorithm}.`)]
  const age = now - signing.signsFrom
  const following = keys.some((key) => key.generation > signing.generation)
  if (age < 0)
    findings.push(
      warning(
        `${title} starts signing at a time that is in the future by this machine's clock. Is the clock right?`,
      ),
    )
  if (age > rotation.every + rotation.announce && !following)
    findings.push(
      warning(
        rotation.automatic
          ? `${title} should have been replaced by now. Is a service running on ${place.name}?`
          : `${title} is older than \`keys.rotation.every\`: run \`postern keys rotate\`.`,
      ),
    )
  return findings
}

async function examineHistory(
  keys: readonly StoredKey[],
  store: Store | undefined,
): Promise<readonly Diagnosis[]> {
  if (store === undefined) return []
  const before = await rememberedKeys(store)
  if (before.length === 0) return [fine('The store remembers no keys yet.')]
  if (keys.some(({ kid }) => before.includes(kid))) return [fine('The store knows these keys.')]
  return [
    failing(
      'The store remembers other keys: these are new, or belong to another installation. Tokens signed with the ' +
        'other keys are refused. If that is not what you want, restore the right keys from a backup.',
    ),
  ]
}
