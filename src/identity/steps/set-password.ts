import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { ATTEMPTS, DirectoryRefusal } from '../directory/editors/editing.ts'
import { planPassword } from '../directory/editors/user.ts'
import { PASSWORD_LENGTH } from '../directory/hashing/hasher.ts'
import type { UserRecord } from '../directory/records/schema.ts'
import { noteCall } from '../dependencies/dependencies.ts'
import type { FormProblem } from '../pages/layout.ts'
import { TEXTS } from '../pages/texts.ts'
import type { StepDependencies } from './endpoint.ts'
import { give, passwordSet, type PasswordWay } from './records.ts'

const T = TEXTS.fields

/** The mistakes in a new password that was typed twice, each with the field that has it (C6.3.7). */
export function problemsOfPassword(
  params: ReadonlyMap<string, string>,
  username: string,
): readonly FormProblem[] {
  const password = params.get('password')
  const again = params.get('again')
  const text = password === undefined ? T.missing : troubleOf(password.normalize('NFC'), username)
  if (text !== undefined) return [{ field: 'password', text }]
  if (again === password) return []
  return [{ field: 'again', text: again === undefined ? T.missingAgain : T.unequal }]
}

const sameText = (one: string, other: string): boolean =>
  one.normalize('NFKC').toLowerCase() === other.normalize('NFKC').toLowerCase()

function troubleOf(password: string, username: string): string | undefined {
  if (password.length < PASSWORD_LENGTH.least) return T.tooShort
  if (password.length > PASSWORD_LENGTH.most) return T.tooLong
  return sameText(password, username) ? T.isName : undefined
}

interface Setting {
  readonly username: string
  readonly subject: string
  readonly password: string
  readonly way: PasswordWay
  /** Whether the user, as the store has them when it is written, is still the one who was verified. */
  readonly admits: (user: UserRecord) => boolean
  /** Whether what has proven the person still does. Asked right before it is written. */
  readonly isProven?: () => Promise<boolean>
}

/**
 * Sets a password that its owner has chosen, and ends all that the person holds (C6.3.6). Resolves with its hash; with undefined,
 * and nothing has changed, where the user is not admitted any more. Rejects with Fault `identity_unavailable` or
 * `audit_unavailable`.
 */
export async function setPassword(
  { admits, isProven, password, subject, username, way }: Setting,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<string | undefined> {
  const admit = (user: UserRecord): void => {
    if (!admits(user)) throw new DirectoryRefusal('somebody else was faster')
  }
  const overtaken = new Fault('identity_unavailable', { detail: 'somebody else changes the user' })
  for (let attempt = 0; attempt < ATTEMPTS; attempt++)
    try {
      const planned = await planPassword(dependencies.users, username, password, admit)
      const commit = async (): Promise<void> => {
        // Who was overtaken ends nothing: the person may be signed in again by now, with what the other one has set.
        if ((await dependencies.users.show(username)).version !== planned.version) throw overtaken
        if ((await isProven?.()) === false) throw new DirectoryRefusal('what has proven the person has ended')
        if ((await planned.commit()) === undefined) throw overtaken
      }
      await give(passwordSet(exchange, { username, subject, way }), commit, dependencies)
      noteCall(exchange, dependencies, 'info', 'password_set', { subject, way })
      return planned.password
    } catch (thrown) {
      if (thrown instanceof DirectoryRefusal) return undefined
      if (thrown !== overtaken) throw thrown
    }
  throw overtaken
}
