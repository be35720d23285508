import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { fileURLToPath } from 'node:url'
import type { PeopleCall, PeopleUser } from '../../src/contracts/people-module.ts'
import type { Configuration } from '../../src/settings/configuration.ts'

/** What a test lets the module answer; each may throw, and answer nonsense. */
export interface PuppetAnswers {
  findUserByName: (username: string, call: PeopleCall) => unknown
  findUserBySubject: (subject: string, call: PeopleCall) => unknown
  verifyPassword: (user: PeopleUser | undefined, password: string, call: PeopleCall) => unknown
}

export interface PuppetCall {
  readonly name: keyof PuppetAnswers
  readonly args: readonly unknown[]
  /** Set by the test: what the module does. */
  answer?: () => unknown
}

export interface Puppet {
  /** For `directory.people`. */
  readonly people: NonNullable<Configuration['directory']['people']>
  /** May be changed at any time. */
  readonly answers: PuppetAnswers
  /** Every call so far. */
  readonly calls: PuppetCall[]
  readonly called: (name: keyof PuppetAnswers) => PuppetCall[]
  readonly stop: () => void
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
 * A module of people whose answers a test gives. Postern imports it itself, so that both share no memory but node's own
 * channels.
 */
export function puppetPeople(answers: PuppetAnswers): Puppet {
  const channel = `people ${randomUUID()}`
  const calls: PuppetCall[] = []
  const puppet: Puppet = {
    people: { kind: 'module', file: FILE, options: { channel } },
    answers,
    calls,
    called: (name) => calls.filter((call) => call.name === name),
    stop: () => void unsubscribe(channel, play),
  }
  function play(message: unknown): void {
    const call = message as PuppetCall
    calls.push(call)
    call.answer = () => (puppet.answers[call.name] as (...args: readonly unknown[]) => unknown)(...call.args)
  }
  subscribe(channel, play)
  return puppet
}
