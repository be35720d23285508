import { EventEmitter } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { atEnd } from '../../support/shared.ts'
import type { PeopleModule } from '../../../src/base/contracts/people/people-module.ts'
import type { User } from '../../../src/base/contracts/people/people.ts'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { ModuleCalls } from '../../../src/extensions/people/module-calls.ts'
import { ModuleDirectory } from '../../../src/extensions/people/module-directory.ts'
import { LayeredPasswords, ModulePeople } from '../../../src/extensions/people/module-people.ts'
import type { Runner } from '../../../src/extensions/people/module-thread.ts'
import { type ModulePlan, serveModule } from '../../../src/extensions/people/serve-module.ts'
import { DisabledMarks } from '../../../src/identity/directory/records/marks.ts'
import { Roles, StoredDirectory } from '../../../src/identity/directory/records/stored-directory.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { makeDirectory } from '../../support/directory.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

/** The functions of a module as they may be: of any type. */
export type WrittenModule = Readonly<Record<keyof Omit<PeopleModule, 'close'>, (...args: never[]) => unknown>>

/**
 * What runs in the thread of a module, here on the test's own: it speaks by messages as there. It takes none any more once
 * it is told to block.
 */
export class OwnThread extends EventEmitter {
  blocks = false
  readonly #channel = new MessageChannel()

  constructor(module: unknown, plan: ModulePlan) {
    super()
    const { port1, port2 } = this.#channel
    port2.on('message', (told) => this.emit('message', told))
    serveModule(port1, plan, () => module)
  }

  postMessage(order: unknown): void {
    if (!this.blocks) this.#channel.port2.postMessage(order)
  }

  /** As `process.exit()` of the module. */
  exit(code: number): void {
    this.#channel.port1.close()
    this.emit('exit', code)
  }

  terminate(): void {
    this.exit(1)
  }

  close(): void {
    // Its end closes both ports.
  }

  unref(): void {
    // It keeps nothing alive.
  }
}

/** Resolves when messages to a module and back have been read, and all that follows from them. */
export async function exchanged(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** A `ModuleDirectory` over a module that a test writes; nothing passes but by the test's own clocks. */
export async function makeModuleDirectory(module: WrittenModule) {
  const clock = movableClock()
  const timers = manualAfter()
  const failed: Error[] = []
  const decoysFailed: unknown[] = []
  /** Milliseconds that were waited for in place of a verification. */
  const waits: number[] = []
  const replaced: string[] = []
  const threads: OwnThread[] = []
  const plan = { source: { package: 'of the test' }, options: {} }
  const calls = await ModuleCalls.open(plan, {
    clock,
    after: timers.after,
    failed: (cause) => failed.push(cause),
    replaced: ({ message }) => replaced.push(message),
    start: (plan) => {
      const thread = new OwnThread(module, plan)
      threads.push(thread)
      return { worker: thread, port: thread } as unknown as Runner
    },
  })
  const directory = new ModuleDirectory(calls, {
    clock,
    decoyFailed: (cause) => decoysFailed.push(cause),
    timer: (ms) => {
      waits.push(ms)
      return Promise.resolve()
    },
  })
  atEnd(() => threads.forEach((thread) => thread.exit(0)))
  return { directory, clock, timers, failed, decoysFailed, waits, replaced, threads }
}

/** Users of a module under a configuration without users, and a store. @param written of the configuration's directory */
export async function makeModulePeople(module: WrittenModule, written: object = {}) {
  const parts = await makeModuleDirectory(module)
  const { clock, directory } = parts
  const store = new MemoryStore(clock)
  const recorder = keepNotes()
  const feed = await ChangeFeed.open({ store, clock, recorder, after: manualAfter().after })
  atEnd(() => feed.stop())
  const { roles, places, people: configured } = await makeDirectory(written)
  const storedDirectory = new StoredDirectory({ store, feed, clock })
  const ended: RevokedTokens[] = []
  const people = new ModulePeople({
    ...{ module: directory, earlier: configured, places, store, recorder, clock, storedDirectory },
    roles: new Roles(roles, storedDirectory),
    marks: await DisabledMarks.open({ store, feed }),
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
