/** The mode of a file or folder, as Unix has it. Windows has no mode bits: there the access list says who may do what. */
import { accessSync, constants, existsSync } from 'node:fs'
import { reasonInWords } from './thrown.ts'

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

/** What else to advise if only the group has rights: a Kubernetes fsGroup opens all files of a volume to it. */
export const adviceForGroup = (mode: number): string =>
  (mode & OTHERS) === 0 ? ', or set `dataGroup: own` if its group is this service alone' : ''

/** Why this process can make nothing in a folder, in a few words; undefined if it can, and if there is no folder. */
export function whyUnwritable(folder: string): string | undefined {
  try {
    if (existsSync(folder)) accessSync(folder, constants.W_OK)
    return undefined
  } catch (thrown) {
    return reasonInWords(thrown)
  }
}
