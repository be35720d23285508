import { stat } from 'node:fs/promises'
import type { SigningAlgorithm } from '../contracts/people.ts'
import type { Store } from '../contracts/store.ts'
import { listKeyFiles, readKeyFolder, type StoredKey } from './key-folder.ts'
import { KeyFolderError, listPrivateFolder } from './private-folder.ts'
import { scheduleKeys } from './schedule.ts'
import type { KeysPlan } from './service-keys.ts'
import { rememberedKeys } from './watch-keys.ts'
import { messageOf } from '../kernel/thrown.ts'

/** Something that an operator should know about the keys. */
export interface KeyFinding {
  readonly level: 'fine' | 'warning' | 'error'
  readonly text: string
}

const fine = (text: string): KeyFinding => ({ level: 'fine', text })
const warning = (text: string): KeyFinding => ({ level: 'warning', text })
const error = (text: string): KeyFinding => ({ level: 'error', text })

const DRAFT = /^\..+\.[\w-]{12}$/

/**
 * Everything that is wrong with a key folder, or soon will be. Changes nothing. `now` in seconds since the epoch.
 * Without a `store`, the keys are not compared with the history. Rejects with Fault `identity_unavailable` if the
 * store cannot be reached, and never with KeyFolderError: that becomes a finding.
 */
export async function examineKeys(
  plan: KeysPlan,
  now: number,
  store: Store | undefined,
): Promise<readonly KeyFinding[]> {
  const { folder } = plan
  if ((await stat(folder).catch(() => undefined)) === undefined)
    return [warning(`${folder} does not exist: the first start creates it, with keys.`)]
  try {
    const keys = await readKeyFolder(folder)
    return [
      ...plan.algorithms.flatMap((algorithm) => examineAlgorithm(algorithm, keys, plan, now)),
      ...(await examineFiles(folder)),
      ...(await examineHistory(keys, store)),
    ]
  } catch (thrown) {
    if (!(thrown instanceof KeyFolderError)) throw thrown
    return [error(messageOf(thrown))]
  }
}

function examineAlgorithm(
  algorithm: SigningAlgorithm,
  all: readonly StoredKey[],
  { rotation }: KeysPlan,
  now: number,
): readonly KeyFinding[] {
  const keys = all.filter((key) => key.algorithm === algorithm)
  const signing = scheduleKeys(keys, rotation, now).find(({ state }) => state === 'signing')?.key
  if (signing === undefined) return [warning(`There is no ${algorithm} key: the next start creates one.`)]
  const findings = [fine(`${signing.file} signs ${algorithm}.`)]
  const age = now - signing.signsFrom
  const following = keys.some((key) => key.generation > signing.generation)
  if (age < 0)
    findings.push(
      warning(
        `${signing.file} starts signing at a time that is in the future by this machine's clock. Is the clock right?`,
      ),
    )
  if (age > rotation.every + rotation.announce && !following)
    findings.push(
      warning(
        rotation.automatic
          ? `${signing.file} should have been replaced by now. Is a service running on this folder?`
          : `${signing.file} is older than \`keys.rotation.every\`: run \`postern keys rotate\`.`,
      ),
    )
  return findings
}

async function examineFiles(folder: string): Promise<readonly KeyFinding[]> {
  const known = new Set(await listKeyFiles(folder))
  const others = (await listPrivateFolder(folder)).filter((name) => !known.has(name))
  return others.flatMap((name) =>
    DRAFT.test(name)
      ? [warning(`${name} was left by a process that died while it created a key: remove it.`)]
      : [],
  )
}

async function examineHistory(
  keys: readonly StoredKey[],
  store: Store | undefined,
): Promise<readonly KeyFinding[]> {
  if (store === undefined) return []
  const before = await rememberedKeys(store)
  if (before.length === 0) return [fine('The store remembers no keys yet.')]
  if (keys.some(({ kid }) => before.includes(kid))) return [fine('The store knows these keys.')]
  return [
    error(
      'The store remembers other keys: this folder is new, or belongs to another installation. Tokens signed with the ' +
        'other keys are refused. If that is not what you want, restore the right folder from a backup.',
    ),
  ]
}
