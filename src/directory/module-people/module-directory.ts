import { setTimeout as delay } from 'node:timers/promises'
import type { HashOwner } from '../../contracts/people.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { LoadedFile } from '../../config/modules/import-file.ts'
import { patternOf } from '../../config/load-scalar.ts'
import type { PersonRecord } from '../schema.ts'
import { SUBJECT_PATTERN, USERNAME_PATTERN } from '../names.ts'
import { VerificationQueue } from '../verification-queue.ts'
import { type Answered, Lookups } from './lookups.ts'
import { ModuleCallFault, type ModuleCalls } from './module-calls.ts'
import { PersonMistake } from './plain-person.ts'
import { readPerson } from './read-person.ts'

/** Milliseconds that a user found by subject is remembered: when tokens are refreshed and sessions used. */
export const SUBJECT_KEPT_FOR = 30_000
/**
 * Milliseconds that an answer by name is remembered, found or not. Both alike: else the time of a second try would tell
 * which names exist (T3.9). Short, so that who has just signed up can log in.
 */
export const NAME_KEPT_FOR = 1000
/** Records of about 2 KiB. */
const MOST_SUBJECTS = 10_000
const MOST_NAMES = 1000
/** Verifications. Few: code that hashes in its own thread shares its time among them, and each has two seconds. */
const VERIFIED_AT_ONCE = 4
const VERIFICATIONS_WAITING = 32
/** Milliseconds of one, as long as none was measured. */
const EXPECTED_VERIFICATION = 50

export interface ModuleDirectoryParts {
  readonly clock: Clock
  /** Told once, if the module fails for a user who does not exist. Must not throw. */
  readonly decoyFailed: (cause: unknown) => void
  /** Resolves after that many milliseconds. Tests pass their own. */
  readonly timer?: ((ms: number) => Promise<void>) | undefined
}

/**
 * The operator's code that finds people (C5.7), bounded in time and number, its answers checked and remembered. Methods
 * reject with Fault `people_unavailable` if it fails.
 */
export class ModuleDirectory {
  readonly #parts: ModuleDirectoryParts
  readonly #calls: ModuleCalls
  readonly #queue: VerificationQueue
  readonly #timer: (ms: number) => Promise<void>
  readonly #byName: Lookups
  readonly #bySubject: Lookups
  #decoyFailed = false

  constructor(calls: ModuleCalls, parts: ModuleDirectoryParts) {
    const { clock, timer = systemTimer } = parts
    this.#parts = parts
    this.#timer = timer
    this.#calls = calls
    this.#byName = new Lookups(MOST_NAMES, NAME_KEPT_FOR, clock)
    this.#bySubject = new Lookups(MOST_SUBJECTS, SUBJECT_KEPT_FOR, clock)
    this.#queue = new VerificationQueue({
      ...{ atOnce: VERIFIED_AT_ONCE, waiting: VERIFICATIONS_WAITING, doubtfulWaiting: 4 },
      ...{ expected: EXPECTED_VERIFICATION, alike: false, timer },
      ...{ full: 'people_unavailable', what: 'password verifications of directory.people' },
    })
  }

  /** The files that its code consists of, as they were when they were loaded. */
  get files(): readonly LoadedFile[] {
    return this.#calls.files
  }

  /** How many verifications of passwords wait for their turn. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /** Whom the module means by a name: `username` may be spelled otherwise. */
  async findByName(username: string): Promise<PersonRecord | undefined> {
    if (!patternOf(USERNAME_PATTERN).test(username)) return undefined
    const { record } = await this.#byName.find(username, async () => {
      const answered = await this.#find('findUserByName', username)
      this.#byName.keep(username, answered)
      if (answered.record !== undefined) this.#bySubject.keep(answered.record.subject, answered)
      return answered
    })
    return record
  }

  async findBySubject(subject: string): Promise<PersonRecord | undefined> {
    if (!patternOf(SUBJECT_PATTERN).test(subject)) return undefined
    const { record } = await this.#bySubject.find(subject, async () => {
      const answered = await this.#find('findUserBySubject', subject, (record) => {
        if (record.subject !== subject) throw new PersonMistake('a user with another subject')
      })
      // Nobody is not remembered: a lookup by subject comes from what this service has issued, so it is rare.
      if (answered.record !== undefined) this.#bySubject.keep(subject, answered)
      return answered
    })
    return record
  }

  /**
   * Whether it is the password of a user of this directory. Of nobody it is none, and the module is called with
   * undefined to take as long; if that holds up others, or if its code did no work for nobody, this waits instead.
   */
  async verify(password: string, person: PersonRecord | undefined, owner: HashOwner): Promise<boolean> {
    const line = owner.doubted ? 'doubtful' : 'ordinary'
    // An empty password is nobody's: LDAP takes a bind with one for an anonymous bind, which succeeds (RFC 4513 §5.1.2).
    if (person !== undefined && password !== '')
      return this.#queue.run(line, owner.name, () => this.#verify(person, password))
    let missing = 0
    await this.#queue.pretend(line, owner.name, async () => {
      const started = performance.now()
      await this.#verifyNobody(password)
      missing = missingTime(performance.now() - started, this.#queue)
    })
    if (missing > 0) await this.#timer(missing)
    return false
  }

  /** Never rejects: nothing is asked any more. */
  close(): Promise<void> {
    return this.#calls.close()
  }

  #find(
    name: 'findUserByName' | 'findUserBySubject',
    key: string,
    check: (record: PersonRecord) => void = () => undefined,
  ): Promise<Answered> {
    return this.#calls.run({
      name,
      args: [key],
      read: (answer): Answered => {
        const record = readPerson(answer)
        if (record !== undefined) check(record)
        return { record }
      },
    })
  }

  #verify(person: PersonRecord | undefined, password: string): Promise<boolean> {
    return this.#calls.run({
      name: 'verifyPassword',
      args: [person, password],
      // The thread answers nothing but true and false.
      read: (answer): boolean => answer === true,
    })
  }

  /**
   * A module that cannot verify a password of nobody must not show who is somebody, so only its being late is told, as
   * it would be of a user.
   */
  async #verifyNobody(password: string): Promise<void> {
    try {
      await this.#verify(undefined, password)
    } catch (thrown) {
      if (!(thrown instanceof ModuleCallFault) || thrown.trouble === 'late') throw thrown
      if (this.#decoyFailed) return
      this.#decoyFailed = true
      this.#parts.decoyFailed(thrown)
    }
  }
}

/** Milliseconds to wait after a verification that was far too quick to have been one. */
const missingTime = (took: number, queue: VerificationQueue): number =>
  took < queue.quickest() / 2 ? Math.max(0, queue.typical() - took) : 0

const systemTimer = (ms: number): Promise<void> => delay(ms, undefined, { ref: false })
