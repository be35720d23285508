import type { HashOwner, PasswordHasher, PasswordVerifier, User } from '../../contracts/people.ts'
import type { ModuleDirectory } from './module-directory.ts'
import type { ModulePeople } from './module-people.ts'

export interface PasswordParts {
  readonly hasher: PasswordHasher
  readonly module: Pick<ModuleDirectory, 'verify'>
  readonly people: Pick<ModulePeople, 'recordOf' | 'claim'>
}

/**
 * Verifies passwords where some hashes are Postern's and others are in another system. A wrong one costs a verification
 * in either place, whosever it is: so the time does not tell where a name exists, or that it does (T3.9). A right one
 * costs only its own.
 */
export class LayeredPasswords implements PasswordVerifier {
  readonly #parts: PasswordParts

  constructor(parts: PasswordParts) {
    this.#parts = parts
  }

  async verify(password: string, user: User | undefined, owner: HashOwner): Promise<boolean> {
    const { hasher, module, people } = this.#parts
    if (user?.passwordHash !== undefined) {
      if (await hasher.verify(password, user.passwordHash, owner)) return true
      // That the other system is out of reach is no trouble of a user who is not there.
      await module.verify(password, undefined, owner).catch(() => undefined)
      return false
    }
    // Before: a wrong password whose hash finds no room would be an attempt that broke, and not be counted (C6.3.5).
    hasher.requireRoom(owner)
    const right = await module.verify(password, user && people.recordOf(user), owner)
    if (right && user !== undefined) return people.claim(user)
    await hasher.verify(password, undefined, owner).catch(() => undefined)
    return false
  }
}
