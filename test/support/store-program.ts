/** What store-process.ts runs: `store-program.ts claim|write|hold PATH …`. */
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import type { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'

const [mode = '', path = '', count = '0'] = process.argv.slice(2)
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
/** Who only holds a lock loads nothing of it. */
async function open(): Promise<SqliteStore> {
  const { SqliteStore } = await import('../../src/state/stores/sqlite/sqlite.ts')
  const { systemClock } = await import('../../src/base/kernel/clock.ts')
  return SqliteStore.open({ path, synchronous: 'normal', maxSize: undefined }, systemClock)
}

const modes: Readonly<Record<string, () => Promise<void>>> = {
  /**
   * Creates and consumes `count` keys as fast as it can, once told to. Tells the keys that it was first at, and those at
   * which a call was not answered in time; such a call is made again.
   */
  async claim() {
    const store = await open()
    const { Fault } = await import('../../src/base/kernel/faults.ts')
    tell('ready')
    await once(process.stdin, 'data')
    const result = { created: [] as string[], first: [] as string[], unanswered: [] as string[] }
    const answerOf = async <T>(key: string, ask: () => Promise<T>): Promise<T> => {
      for (;;) {
        try {
          return await ask()
        } catch (thrown) {
          if (!(thrown instanceof Fault) || thrown.code !== 'identity_unavailable') throw thrown
          result.unanswered.push(key)
        }
      }
    }
    const claim = async (key: string): Promise<void> => {
      if (await answerOf(key, () => store.create('key', key, { value: {} }))) result.created.push(key)
      if ((await answerOf(key, () => store.consume('key', key)))?.first) result.first.push(key)
    }
    const BATCH = 5
    for (let n = 0; n < Number(count); n += BATCH)
      await Promise.all(
        Array.from({ length: Math.min(BATCH, Number(count) - n) }, (_, i) => claim(`${n + i}`)),
      )
    tell(`result ${JSON.stringify(result)}`)
    await store.close()
    process.stdin.destroy()
  },

  /** Writes for ever, and tells each key only once the store has answered. */
  async write() {
    const store = await open()
    for (let n = 0; ; n += 1) {
      const key = `${process.pid}-${n}`
      await store.create('key', key, { value: { n } })
      tell(`created ${key}`)
      if ((await store.consume('key', key))?.first) tell(`consumed ${key}`)
    }
  },

  /** Takes the write lock and keeps it until a line comes. */
  async hold() {
    const db = new DatabaseSync(path)
    db.exec('BEGIN IMMEDIATE')
    tell('held')
    await once(process.stdin, 'data')
    db.exec('ROLLBACK')
    tell('released')
    process.stdin.destroy()
  },
}

await modes[mode]?.()
