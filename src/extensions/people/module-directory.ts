import { performance } from 'node:perf_hooks'
import type { LRUCache } from 'lru-cache'
import type { LoadedFile } from '../../base/config/modules/import-file.ts'
import { openSource } from '../../base/config/modules/open-module.ts'
import { pathText, Problems } from '../../base/config/problems.ts'
import { patternOf } from '../../base/config/validate.ts'
import type { HashOwner } from '../../base/contracts/people/people.ts'
import { after, type Clock, systemClock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { readRecord } from '../../identity/directory/records/read-records.ts'
import {
  type PersonRecord,
  personRecordSchema,
  SUBJECT_PATTERN,
  USERNAME_PATTERN,
} from '../../identity/directory/records/schema.ts'
import { timedCache } from '../../identity/directory/records/stored-directory.ts'
import { pauseFor, VerificationQueue } from '../../identity/directory/hashing/verification-queue.ts'
import type { PeopleOpening } from '../../identity/directory/records/people-source.ts'
import type { PeopleConfig } from './schema.ts'
import { ModuleCallFault, ModuleCalls } from './module-calls.ts'
import { PersonMistake, plainPerson } from './plain-person.ts'

/** Problems of one answer that are logged. */
const MOST_PROBLEMS = 5

/**
 * The module's answer as a record; undefined if there is no such user. A copy of it is checked like a user of the
 * configuration.
 * @throws PersonMistake
 */
export function readPerson(given: unknown): PersonRecord | undefined {
  const plain = plainPerson(given)
  if (plain === undefined) return undefined
  const report = new Problems()
  const record = readRecord(personRecordSchema, plain, report)
  if (record !== undefined) return record
  const problems = report.list.map(({ path, message }) => `${pathText(path)} ${withoutValue(message)}`)
  throw new PersonMistake(problems.slice(0, MOST_PROBLEMS).join('; '))
}

/** `expected …` without `, got …`: the value may be anything that the module has. */
const withoutValue = (message: string): string => message.replace(/, got .*/s, '')

interface Answered {
  readonly record: PersonRecord | undefined
}

/** Lookups of one kind that run at once. More are refused: invented names must not end refreshing. */
const AT_ONCE = 32

/** Lookups of one kind: answers are remembered, equal lookups share one call, and few run at once. */
class Lookups {
  readonly #kept: LRUCache<string, Answered>
  readonly #flights = new Map<string, Promise<Answered>>()

  constructor(most: number, ttl: number, clock: Clock) {
    this.#kept = timedCache(most, ttl, clock)
  }

  /** Rejects as `look` does, and with Fault `people_unavailable` if too many are under way. */
  async find(key: string, look: () => Promise<Answered>): Promise<Answered> {
    const known = this.#kept.get(key) ?? this.#flights.get(key)
    if (known !== undefined) return known
    if (this.#flights.size >= AT_ONCE)
      throw new Fault('people_unavailable', {
        detail: `directory.people: ${AT_ONCE} lookups are under way`,
        retryAfter: 1,
      })
    const flight = look().finally(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }

  keep(key: string, answered: Answered): void {
    this.#kept.set(key, answered)
  }
}

/** How long a user found by subject is remembered, in milliseconds: for refreshes of tokens and uses of sessions. */
const SUBJECT_KEPT_FOR = 30_000
/**
 * How long an answer by name is remembered, found or not, in milliseconds. The time is the same for both, because the time
 * of a second try would otherwise show which names exist (T3.9). It is short, so that new users can log in at once.
 */
const NAME_KEPT_FOR = 1000
/** Records of about 2 KiB. */
const MOST_SUBJECTS = 10_000
const MOST_NAMES = 1000
/** Verifications. Few: code that hashes in its own thread shares its time among them, and each has two seconds. */
const VERIFIED_AT_ONCE = 4
const VERIFICATIONS_WAITING = 32
const DOUBTFUL_WAITING = 4
/** How long a verification is thought to take before any was measured, in milliseconds. */
const EXPECTED_VERIFICATION = 50

interface ModuleDirectoryParts {
  readonly clock: Clock
  /** Called once, if the module fails for a user who does not exist. Must not throw. */
  readonly decoyFailed: (cause: unknown) => void
  readonly timer?: ((ms: number) => Promise<void>) | undefined
}

/** The operator's code that finds people (C5.7), within bounds. Methods reject with Fault `people_unavailable`. */
export class ModuleDirectory {
  readonly #parts: ModuleDirectoryParts
  readonly #calls: ModuleCalls
  readonly #queue: VerificationQueue
  readonly #timer: (ms: number) => Promise<void>
  readonly #byName: Lookups
  readonly #bySubject: Lookups
  #decoyFailed = false

  constructor(calls: ModuleCalls, parts: ModuleDirectoryParts) {
    const { clock, timer = pauseFor } = parts
    this.#parts = parts
    this.#timer = timer
    this.#calls = calls
    this.#byName = new Lookups(MOST_NAMES, NAME_KEPT_FOR, clock)
    this.#bySubject = new Lookups(MOST_SUBJECTS, SUBJECT_KEPT_FOR, clock)
    this.#queue = new VerificationQueue({
      atOnce: VERIFIED_AT_ONCE,
      waiting: VERIFICATIONS_WAITING,
      doubtfulWaiting: DOUBTFUL_WAITING,
      expected: EXPECTED_VERIFICATION,
      alike: false,
      full: 'people_unavailable',
      what: 'password verifications of directory.people',
      timer,
    })
  }

  get files(): readonly LoadedFile[] {
    return this.#calls.files
  }

  get waiting(): number {
    return this.#queue.waiting
  }

  /** The user whom the module means by a name: their `username` may be spelled differently. */
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
      // An unknown subject is not remembered: it comes from a token or session of this service, so it is rare.
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

  /** A module that cannot verify nobody's password must not show who exists: only its being late is passed on. */
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

/** How long to wait after a verification that was far too quick to have been one, in milliseconds. */
const missingTime = (took: number, queue: VerificationQueue): number =>
  took < queue.quickest() / 2 ? Math.max(0, queue.typical() - took) : 0

/** Opens the module of `directory.people` in a thread. Undefined, and a problem reported, if it can't be used. */
export async function openPeople(
  { options, ...named }: PeopleConfig,
  { clock, problems, note }: PeopleOpening,
): Promise<ModuleDirectory | undefined> {
  const calls = await openSource(named, { at: ['directory', 'people'], problems }, (source) =>
    ModuleCalls.open(
      { source, options },
      {
        after,
        clock,
        failed: (cause) => note('module_failed', cause),
        replaced: (cause) => note('people_thread_replaced', cause),
      },
    ),
  )
  return (
    calls && new ModuleDirectory(calls, { clock, decoyFailed: (cause) => note('people_decoy_failed', cause) })
  )
}

/** Opens it for a check, and closes it. */
export async function tryPeople(config: PeopleConfig, problems: Problems): Promise<void> {
  const opened = await openPeople(config, { clock: systemClock, problems, note: () => undefined })
  await opened?.close()
}
