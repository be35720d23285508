/** The mode of a file or folder, as Unix has it. Windows has no mode bits: there the access list says who may do what. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { reasonInWords } from '../kernel/thrown.ts'

/** For a file that only its owner may read. */
export const PRIVATE_FILE = 0o600

const HAS_MODES = process.platform !== 'win32'
const OTHERS_MAY_ANYTHING = 0o077
const OTHERS_MAY_WRITE = 0o022
const OTHERS = 0o007

export const mayOthersAccess = (mode: number): boolean => HAS_MODES && (mode & OTHERS_MAY_ANYTHING) !== 0

export const mayOthersWrite = (mode: number): boolean => HAS_MODES && (mode & OTHERS_MAY_WRITE) !== 0

/** The rights, as `chmod` takes them. */
export const octalMode = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')

/** Further advice if only the group has rights: a Kubernetes fsGroup opens all files of a volume to it. */
export const adviceForGroup = (mode: number): string => ((mode & OTHERS) === 0 ? OWN_GROUP : '')

const OWN_GROUP = ', or set `dataGroup: own` if its group is this service alone'

/** The name of a user of the operating system; undefined where it has none, as in many containers. */
export function userName(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.find((line) => line.split(':')[2] === String(uid))?.split(':')[0]
  } catch {
    return undefined
  }
}

/** The user of this process, by number. Undefined on Windows. */
const ownUser = (): number | undefined => process.geteuid?.()

/** Whether a file belongs to another user than this process's. Root may own everything. */
export const isAnothers = (owner: number, user = ownUser()): boolean =>
  user !== undefined && owner !== user && owner !== 0

/** As `chown` takes it. */
const asOwner = (user: number): string => userName(user) ?? String(user)

interface FolderOwner {
  readonly mode: number
  /** The owner. */
  readonly uid: number
}

/**
 * Who could replace what is in a folder, and the command that ends this. Undefined if only this process's user and root can.
 *
 * @param group whether the group of the folder has `others` as members, or is this service's `own` (`dataGroup`): it may write
 *   then, and so may everybody if the folder is root's. A platform has made that folder, such as a volume of Kubernetes.
 */
export function whoMayReplace(
  folder: string,
  { mode, uid }: FolderOwner,
  group: 'own' | 'others' = 'others',
  user = ownUser(),
): string | undefined {
  if (user === undefined) return undefined
  if (isAnothers(uid, user))
    return `belongs to the user ${asOwner(uid)}. As root, run chown -R ${asOwner(user)} ${folder}`
  if (!mayOthersWrite(mode)) return undefined
  const groupOnly = (mode & OTHERS_MAY_WRITE & OTHERS) === 0
  if (group === 'own' && (groupOnly || uid === 0)) return undefined
  const advice = groupOnly || uid !== user ? OWN_GROUP : ''
  const command =
    uid === user
      ? `Run chmod 700 ${folder}`
      : `As root, run chown ${asOwner(user)} ${folder} and chmod 700 ${folder}`
  return `can be written by other users (mode ${octalMode(mode)}). ${command}${advice}`
}

/** Why this process can make nothing in a folder, in a few words; undefined if it can, and if there is no folder. */
export function whyUnwritable(folder: string): string | undefined {
  try {
    if (existsSync(folder)) accessSync(folder, constants.W_OK)
    return undefined
  } catch (thrown) {
    return reasonInWords(thrown)
  }
}
