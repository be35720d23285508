import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { BroadcastChannel } from 'node:worker_threads'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import type { PeopleCall, PeopleUser } from '../../../src/base/contracts/people/people-module.ts'
import type { PeopleConfig } from '../../../src/extensions/people/schema.ts'

/** What a test lets the module answer; each may throw, and answer nonsense, by `inThread` where it can't be copied. */
export interface PuppetAnswers {
  findUserByName: (username: string, call: PeopleCall) => unknown
  findUserBySubject: (subject: string, call: PeopleCall) => unknown
  verifyPassword: (user: PeopleUser | undefined, password: string, call: PeopleCall) => unknown
}

export interface PuppetCall {
  readonly name: keyof PuppetAnswers
  readonly args: readonly unknown[]
}

/** What the module tells the test. */
export type PuppetQuestion =
  (PuppetCall & { readonly id: string }) | { readonly id: string; readonly aborted: true }

/** What the test tells the module: the value, what it throws, or code whose value it is. */
export type PuppetAnswer = { readonly to: string } & (
  { readonly value: unknown } | { readonly threw: unknown } | { readonly code: string }
)

class InThread {
  readonly code: string

  constructor(code: string) {
    this.code = code
  }
}

/** An answer that cannot be copied from thread to thread: an expression that the module's own thread evaluates. */
export const inThread = (code: string): unknown => new InThread(code)

export interface Puppet {
  /** For `directory.people`. */
  readonly people: PeopleConfig
  /** May be changed at any time. */
  readonly answers: PuppetAnswers
  /** Every call so far. */
  readonly calls: PuppetCall[]
  readonly called: (name: keyof PuppetAnswers) => PuppetCall[]
  readonly stop: () => void
}

/** A configuration with a puppet. */
export const withPeople =
  (people: PeopleConfig) =>
  (loaded: Configuration): Configuration => {
    const directory: Configuration['directory'] & { people: PeopleConfig } = { ...loaded.directory, people }
    return { ...loaded, directory }
  }

const FILE = fileURLToPath(new URL('puppet-people-module.ts', import.meta.url))

/** Users by name, with passwords that are `NAME-password`. */
export function answersOf(users: Readonly<Record<string, object>>): PuppetAnswers {
  const all = (): PeopleUser[] => Object.values(users) as PeopleUser[]
  return {
    findUserByName: (username) => all().find((user) => user.username === username),
    findUserBySubject: (subject) => all().find((user) => user.subject === subject),
    verifyPassword: (user, password) => user !== undefined && password === `${user.username}-password`,
  }
}

/**
 * A module of people whose answers a test gives. Postern runs it in a thread of its own, so that both share no memory but
 * a channel.
 */
export function puppetPeople(answers: PuppetAnswers): Puppet {
  const name = `people ${randomUUID()}`
  const calls: PuppetCall[] = []
  const stops = new Map<string, AbortController>()
  const channel = new BroadcastChannel(name)
  const puppet: Puppet = {
    people: { kind: 'module', file: FILE, options: { channel: name } },
    answers,
    calls,
    called: (name) => calls.filter((call) => call.name === name),
    stop: () => channel.close(),
  }
  const tell = (answer: PuppetAnswer): void => channel.postMessage(answer)
  const play = async ({ id, name, args }: PuppetCall & { readonly id: string }): Promise<void> => {
    calls.push({ name, args })
    const stop = new AbortController()
    stops.set(id, stop)
    const answer = puppet.answers[name] as (...args: readonly unknown[]) => unknown
    try {
      const value = await answer(...args, { signal: stop.signal })
      tell(value instanceof InThread ? { to: id, code: value.code } : { to: id, value })
    } catch (threw) {
      tell({ to: id, threw })
    }
  }
  channel.onmessage = ({ data }: { readonly data: unknown }) => {
    const question = data as PuppetQuestion | PuppetAnswer
    if ('to' in question) return
    if ('aborted' in question) stops.get(question.id)?.abort()
    else void play(question)
  }
  return puppet
}
