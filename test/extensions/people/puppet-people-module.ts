import { randomUUID } from 'node:crypto'
import { runInThisContext } from 'node:vm'
import { BroadcastChannel } from 'node:worker_threads'
import type { PeopleCall, PeopleModule } from '../../../src/base/contracts/people/people-module.ts'
import type { PuppetAnswer, PuppetCall, PuppetQuestion } from './puppet-people.ts'

/** A module of people that does what a test says, over a channel, since it runs in another thread (puppet-people.ts). */
export default function createPuppet(options: { readonly channel: string }): PeopleModule {
  const test = new BroadcastChannel(options.channel)
  const waiting = new Map<string, (answer: PuppetAnswer) => void>()
  test.onmessage = ({ data }: { readonly data: unknown }) => {
    const answer = data as PuppetAnswer | PuppetQuestion
    if ('to' in answer) waiting.get(answer.to)?.(answer)
  }
  const ask =
    (name: PuppetCall['name']) =>
    async (...given: readonly unknown[]): Promise<never> => {
      const id = randomUUID()
      const { signal } = given.at(-1) as PeopleCall
      const { promise, resolve } = Promise.withResolvers<PuppetAnswer>()
      waiting.set(id, resolve)
      const tell = (question: PuppetQuestion): void => test.postMessage(question)
      signal.addEventListener('abort', () => tell({ id, aborted: true }))
      tell({ id, name, args: given.slice(0, -1) })
      const answer = await promise
      waiting.delete(id)
      if ('threw' in answer) throw answer.threw
      return ('code' in answer ? runInThisContext(`(${answer.code})`) : answer.value) as never
    }
  return {
    findUserByName: ask('findUserByName'),
    findUserBySubject: ask('findUserBySubject'),
    verifyPassword: ask('verifyPassword'),
    close: () => test.close(),
  }
}
