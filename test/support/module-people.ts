import { Roles } from '../../src/directory/roles.ts'
import { onTestFinished } from 'vitest'
import type { User } from '../../src/contracts/people.ts'
import type { PeopleModule } from '../../src/contracts/people-module.ts'
import type { RevokedTokens } from '../../src/contracts/tokens.ts'
import { ModuleDirectory } from '../../src/directory/module-people/module-directory.ts'
import { ModulePeople } from '../../src/directory/module-people/module-people.ts'
import { LayeredPasswords } from '../../src/directory/module-people/passwords.ts'
import { Fault } from '../../src/kernel/faults.ts'
import { StoredDirectory } from '../../src/directory/stored-directory.ts'
import { ChangeFeed } from '../../src/stores/change-feed.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { makeDirectory } from './directory.ts'
import { manualAfter } from './manual-after.ts'
import { movableClock } from './movable-clock.ts'
import { keepNotes } from './notes.ts'

/** The functions of a module as they may be: of any type. */
export type WrittenModule = Readonly<Record<keyof Omit<PeopleModule, 'close'>, (...args: never[]) => unknown>>

/** A `ModuleDirectory` over a module that a test writes; nothing passes but by the test's own clocks. */
export function makeModuleDirectory(module: WrittenModule) {
  const clock = movableClock()
  const timers = manualAfter()
  const failed: Error[] = []
  const decoysFailed: unknown[] = []
  /** Milliseconds that were waited for in place of a verification. */
  const waits: number[] = []
  const directory = new ModuleDirectory(module as PeopleModule, {
    clock,
    after: timers.after,
    failed: (cause) => failed.push(cause),
    decoyFailed: (cause) => decoysFailed.push(cause),
    timer: (ms) => {
      waits.push(ms)
      return Promise.resolve()
    },
  })
  return { directory, clock, timers, failed, decoysFailed, waits }
}

/** Users of a module under a configuration without users, and a store. */
export async function makeModulePeople(module: WrittenModule) {
  const parts = makeModuleDirectory(module)
  const { clock, directory } = parts
  const store = new MemoryStore(clock)
  const recorder = keepNotes()
  const feed = await ChangeFeed.open({ store, clock, recorder, after: manualAfter().after })
  onTestFinished(() => feed.stop())
  const { roles, places, people: configured } = await makeDirectory()
  const storedDirectory = new StoredDirectory({ store, feed, clock })
  const ended: RevokedTokens[] = []
  const people = new ModulePeople({
    ...{ module: directory, earlier: configured, places, store, recorder, clock, storedDirectory },
    roles: new Roles(roles, storedDirectory),
    tokenRevoker: {
      end: (tokens) => {
        ended.push(tokens)
        return Promise.resolve({ sessions: 0, families: 0, codes: 0, consents: 0 })
      },
    },
  })
  /** What the hasher was given in place of the module. */
  const hashed: (string | undefined)[] = []
  let isFull = false
  const full = (): Fault => new Fault('identity_unavailable', { detail: 'the queue is full' })
  const hasher = {
    requireRoom: () => {
      if (isFull) throw full()
    },
    hash: () => Promise.reject(new Error('nothing is hashed')),
    verify: (secret: string, encoded: string | undefined) => {
      hashed.push(encoded)
      if (isFull) return Promise.reject(full())
      return Promise.resolve(secret === encoded)
    },
  }
  const passwords = new LayeredPasswords({ hasher, module: directory, people })
  const verify = (password: string, user: User | undefined): Promise<boolean> =>
    passwords.verify(password, user, { name: 'a test', doubted: false })
  const fill = (): void => {
    isFull = true
  }
  return { ...parts, store, recorder, people, ended, hashed, verify, fill }
}
