import { pathText, Problems } from '../../base/config/problems.ts'
import type {
  Access,
  Client,
  HashOwner,
  PasswordVerifier,
  People,
  User,
} from '../../base/contracts/people/people.ts'
import { checkAccess, compilePerson } from '../../identity/directory/records/compile-records.ts'
import type { Hasher } from '../../identity/directory/hashing/hasher.ts'
import { mayHold } from '../../identity/directory/records/holdings.ts'
import type { MarkedNames } from '../../identity/directory/records/marks.ts'
import { problemsAt } from '../../identity/directory/records/read-records.ts'
import type { PersonRecord } from '../../identity/directory/records/schema.ts'
import {
  formerState,
  type StoredSubject,
  SUBJECT,
  timedCache,
} from '../../identity/directory/records/stored-directory.ts'
import type {
  OpenedSource,
  PeopleLayerParts,
  PeopleOpening,
} from '../../identity/directory/records/people-source.ts'
import { LayeredPeople } from '../../identity/directory/records/people.ts'
import { type ModuleDirectory, openPeople } from './module-directory.ts'
import type { PeopleConfig } from './schema.ts'

interface ModulePeopleParts extends Omit<PeopleLayerParts, 'hasher'> {
  readonly module: ModuleDirectory
}

/** Users whose loss was handled lately, and for how long that is remembered (milliseconds). */
const MOST_LOST = 10_000
const LOST_FOR = 30_000

/**
 * The users of `directory.people` (C5.7), with the roles of one configuration and of the store. A user whose name or
 * subject belongs to the configuration or the store does not count: nobody gets what another one holds. Methods reject
 * with Fault `people_unavailable`, or `identity_unavailable` if the store cannot be reached.
 */
export class ModulePeople implements People {
  readonly #parts: ModulePeopleParts
  /** The record that each user was made of: the module gets a copy of it. */
  readonly #records = new WeakMap<User, PersonRecord>()
  /** Records whose unknown roles were logged. */
  readonly #checked = new WeakSet<PersonRecord>()
  readonly #lost: ReturnType<typeof timedCache<true>>

  constructor(parts: ModulePeopleParts) {
    this.#parts = parts
    this.#lost = timedCache<true>(MOST_LOST, LOST_FOR, parts.clock)
  }

  findClient(): Promise<Client | undefined> {
    return Promise.resolve(undefined)
  }

  async findUserByName(username: string): Promise<User | undefined> {
    const marks = await this.#parts.marks.current()
    const record = await this.#parts.module.findByName(username)
    // Also where nobody was found, so that the time does not show who exists (T3.9).
    const other = await this.#otherOwner(record?.subject ?? NO_SUBJECT)
    if (record === undefined || (await this.#isTaken(record, username, other))) return undefined
    return this.#user(record, marks)
  }

  /** Ends all tokens and sessions of a user who is gone, or may no longer hold anything. */
  async findUserBySubject(subject: string): Promise<User | undefined> {
    const owner = await this.#parts.storedDirectory.findSubject(subject)
    if (isOfStore(owner) || (await this.#machineNamed(subject)) !== undefined) return undefined
    const marks = await this.#parts.marks.current()
    const record = await this.#parts.module.findBySubject(subject)
    if (record === undefined || !mayHold(record)) await this.#endAll(subject)
    return record && this.#user(record, marks)
  }

  /** The module's record of a user; undefined if the user is not from the module. */
  recordOf(user: User): PersonRecord | undefined {
    return this.#records.get(user)
  }

  /**
   * Records that a subject is this user's, so that it is never given to another one: before the first token.
   * @returns false if it belongs to another user meanwhile, or the data of who had it was erased
   */
  async claim({ subject, username }: User): Promise<boolean> {
    const { storedDirectory, store } = this.#parts
    const owner = await storedDirectory.findSubject(subject)
    // A record that the cache still has may be gone.
    if (owner !== undefined) return !isOfStore(owner) && (await formerState(subject, store)) !== 'erased'
    const value: StoredSubject = { username, module: true }
    if (await store.create(SUBJECT, subject, { value })) {
      if ((await formerState(subject, store)) !== 'erased') return true
      await store.remove(SUBJECT, subject)
      return false
    }
    return !isOfStore((await store.find(SUBJECT, subject))?.value as StoredSubject | undefined)
  }

  /** The other owner of a subject: the name, or `true` for a user of the store who does not count. */
  async #otherOwner(subject: string): Promise<string | true | undefined> {
    const { earlier, storedDirectory } = this.#parts
    const other = await earlier.findUserBySubject(subject)
    const isStored = isOfStore(await storedDirectory.findSubject(subject))
    return other?.username ?? (await this.#machineNamed(subject)) ?? (isStored || undefined)
  }

  /** The tokens of a machine have its id as their subject (C6.1.5a): a user of that subject would hold them. */
  async #machineNamed(id: string): Promise<string | undefined> {
    const client = await this.#parts.earlier.findClient(id)
    return client?.kind === 'machine' ? `machine ${client.name}` : undefined
  }

  async #isTaken(
    { subject, username }: PersonRecord,
    typed: string,
    other: string | true | undefined,
  ): Promise<boolean> {
    // The name as typed is nobody's of the earlier layers, or they would not be asked.
    if (username !== typed && (await this.#parts.earlier.findUserByName(username)) !== undefined) return true
    if (other === undefined) return false
    this.#parts.recorder.note('error', 'people_subject_taken', {
      subject,
      username,
      of: other,
      detail: 'directory.people gave a user the subject of another one, so this user cannot log in',
    })
    return true
  }

  async #user(record: PersonRecord, marks: MarkedNames): Promise<User> {
    const roles = await this.#parts.roles.of(Object.values(record.access))
    await this.#noteUnknown(record, roles)
    const user = compilePerson(marks.user(record), roles)
    this.#records.set(user, record)
    return user
  }

  /** A role or business that the directory does not have gives nothing, as in a record of the store. */
  async #noteUnknown(record: PersonRecord, roles: ReadonlyMap<string, Access>): Promise<void> {
    if (this.#checked.has(record)) return
    this.#checked.add(record)
    const businesses = await this.#parts.places.findBusinesses(Object.keys(record.access))
    const report = new Problems()
    checkAccess(record, { businesses, roles }, problemsAt(report, []))
    if (!report.failed) return
    const problems = report.list.map(({ path, message }) => `${pathText(path)} ${message}`)
    this.#parts.recorder.note('warn', 'people_access_unknown', { subject: record.subject, problems })
  }

  async #endAll(subject: string): Promise<void> {
    if (this.#lost.has(subject)) return
    this.#lost.set(subject, true)
    try {
      await this.#parts.tokenRevoker.end({ subject }, { cause: { via: 'change of the user' } })
    } catch (thrown) {
      this.#lost.delete(subject)
      throw thrown
    }
    const detail = 'directory.people says that the user is gone or may hold no tokens'
    this.#parts.recorder.note('info', 'people_tokens_ended', { subject, detail })
  }
}

/** No user has it: a subject has no spaces. */
const NO_SUBJECT = 'no subject'

const isOfStore = (owner: StoredSubject | undefined): boolean => owner !== undefined && owner.module !== true

interface PasswordParts {
  readonly hasher: Pick<Hasher, 'verify' | 'requireRoom'>
  readonly module: Pick<ModuleDirectory, 'verify'>
  readonly people: Pick<ModulePeople, 'recordOf' | 'claim'>
}

/**
 * Verifies passwords where some hashes are Postern's and others are in another system. A wrong one costs a verification
 * in either place, whosever it is: so the time does not show whether a name exists, or where (T3.9). A right one
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
      // Ignore the error: the other system may be down, and no user is verified there.
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

/** Undefined, and a problem reported, if the module cannot be used. */
export async function openPeopleSource(
  config: PeopleConfig,
  opening: PeopleOpening,
): Promise<OpenedSource | undefined> {
  const module = await openPeople(config, opening)
  return (
    module && {
      files: module.files,
      layer: ({ hasher, ...parts }) => {
        const people = new ModulePeople({ ...parts, module })
        return {
          people: new LayeredPeople(parts.earlier, people),
          passwords: new LayeredPasswords({ hasher, module, people }),
        }
      },
      waiting: () => module.waiting,
      close: () => module.close(),
    }
  )
}
