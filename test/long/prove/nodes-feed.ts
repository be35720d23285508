/**
 * Whether four readers of the change feed miss one of 200,000 changes (`-- 200000`) that eight writers append at once, each
 * with connections of its own; 1 if one is missing, doubled or out of order.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { FeedPlace } from '../../../src/base/contracts/records/store.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresStore } from '../../../src/extensions/postgres/store.ts'
import { startCluster } from '../../extensions/postgres/support/node-troubles.ts'
import { makeTables, planTo } from '../../support/postgres.ts'

const WRITERS = 8
const READERS = 4
/** Changes that each writer has under way at once. */
const AT_ONCE = 16
const total = Number(process.argv[2] ?? 200_000)
const cluster = await startCluster()
const schema = makeTables(cluster)

async function open(): Promise<PostgresStore> {
  const plan = planTo(cluster.url(), { schema })
  return PostgresStore.open(await PostgresLink.open(plan), systemClock)
}

/** What a writer was answered: the number of each of its changes. */
async function write(store: PostgresStore, writer: number): Promise<readonly number[]> {
  const numbers: number[] = []
  for (let done = 0; done < total / WRITERS; done += AT_ONCE) {
    const appended = Array.from({ length: Math.min(AT_ONCE, total / WRITERS - done) }, (_, at) =>
      store.append('topic', { writer, count: done + at }),
    )
    for (const { sequence } of await Promise.all(appended)) numbers.push(sequence)
  }
  return numbers
}

const writing = { now: true }

async function read(store: PostgresStore): Promise<readonly number[]> {
  const seen: number[] = []
  let at: FeedPlace | undefined
  for (;;) {
    const wereWriting = writing.now
    const page = await store.changes(at, 5000)
    if (page.restarted) throw new Error('the feed says that history was lost')
    for (const { sequence } of page.changes) seen.push(sequence)
    at = page.last ?? at
    if (!page.more && !wereWriting) return seen
    if (!page.more) await pause(20)
  }
}

const stores = await Promise.all(Array.from({ length: WRITERS + READERS }, open))
const reading = stores.slice(WRITERS).map(read)
const begun = performance.now()
const written = await Promise.all(stores.slice(0, WRITERS).map(write))
const seconds = (performance.now() - begun) / 1000
writing.now = false
const all = written.flat().sort((one, other) => one - other)
let isWhole = new Set(all).size === all.length
for (const [reader, seen] of (await Promise.all(reading)).entries()) {
  const wrong = seen.length === all.length ? seen.findIndex((number, at) => number !== all[at]) : -2
  isWhole &&= wrong === -1
  console.log(
    `reader ${reader}: ${seen.length} of ${all.length}, ${wrong === -1 ? 'none missing' : 'NOT THE SAME'}`,
  )
}
console.log(`${(all.length / seconds).toFixed(0)} changes a second`)
await Promise.all(stores.map((store) => store.close()))
await cluster.remove()
process.exitCode = isWhole ? 0 : 1
