import { channel } from 'node:diagnostics_channel'
import type { PeopleModule } from '../../src/contracts/people-module.ts'
import type { PuppetCall } from './puppet-people.ts'

/** A module of people that does what a test says, over a channel (puppet-people.ts). */
export default function createPuppet(options: { readonly channel: string }): PeopleModule {
  const test = channel(options.channel)
  const ask =
    (name: PuppetCall['name']) =>
    (...args: readonly unknown[]): never => {
      const call: PuppetCall = { name, args }
      test.publish(call)
      return call.answer?.() as never
    }
  return {
    findUserByName: ask('findUserByName'),
    findUserBySubject: ask('findUserBySubject'),
    verifyPassword: ask('verifyPassword'),
  }
}
