import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { ModuleStream } from '../../../src/extensions/modules/stream.ts'
import { manualAfter } from '../../support/manual-after.ts'

it('C8.4 a stream does all that it does on account of its call, also when others read on or let go of it', async () => {
  const account = new AsyncLocalStorage<string>()
  const seen: string[] = []
  const note = (what: string): void => void seen.push(`${what} for ${account.getStore() ?? 'nobody'}`)
  const source = new Readable({
    highWaterMark: 1,
    read() {
      note('read')
      // A turn later, as what comes from elsewhere does.
      setImmediate(() => this.push('x'))
    },
    destroy(error, done) {
      note('destroyed')
      done(error)
    },
  })
  const rules = { idle: 60_000, after: manualAfter().after }
  const stream = account.run('its call', () => new ModuleStream(source, rules))
  // Whoever writes the answer waits until its client takes more.
  for (let pieces = 0; pieces < 3; pieces++) {
    await new Promise((resolve) => stream.once('readable', resolve))
    stream.read()
  }
  stream.destroy()
  await new Promise((resolve) => stream.once('close', resolve))
  expect(seen.length).toBeGreaterThan(3)
  expect(new Set(seen)).toEqual(new Set(['read for its call', 'destroyed for its call']))
})
