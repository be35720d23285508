/**
 * How long a round of purging takes in a Postgres store of 1,000,000 records (`-- 1000000`) of which 1 to 100 % have expired, and
 * whether purging keeps up with four writers; 1 if a round takes over 0.1 s or records stay.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { startPurging } from '../../../src/state/stores/open-store.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresStore } from '../../../src/extensions/postgres/store.ts'
import { startCluster } from '../../extensions/postgres/support/node-troubles.ts'
import { makeTables, planTo, query } from '../../support/postgres.ts'

const rows = Number(process.argv[2] ?? 1_000_000)
const SHARES = [0.01, 0.15, 0.6, 1]
/** As the service does. */
const BATCH = 200
/** Milliseconds. */
const LONGEST = 100
const SECONDS = 10
const DAY = 86_400_000

const cluster = await startCluster()
const schema = makeTables(cluster)
const plan = planTo(cluster.url(), { schema, connections: 8, deadline: 60_000 })
const link = await PostgresLink.open(plan)
const store = await PostgresStore.open(link, systemClock)

const ofDead = (share: number, dead: string, living: string): string =>
  `CASE WHEN random() < ${share} THEN ${dead} ELSE ${living} END`

function fill(share: number): void {
  const now = Date.now()
  for (const table of ['record', 'change', 'bucket', 'lockout']) query(cluster, `TRUNCATE ${schema}.${table}`)
  const expiry = ofDead(share, `${now - DAY} + n % 1000`, `${now + DAY} + n % 1000`)
  query(
    cluster,
    `INSERT INTO ${schema}.record (kind, key, value, attempt, expires_at, family)
       SELECT 'kind' || n % 5, md5(n::text), repeat('x', 200), 'a', ${expiry}, md5(n::text) FROM generate_series(1, ${rows}) n`,
  )
  const tenth = rows / 10
  query(
    cluster,
    `INSERT INTO ${schema}.change (sequence, mark, topic, value, expires_at, runs_until)
       SELECT n, n::text, 'topic', '{}', ${expiry}, 0 FROM generate_series(1, ${tenth}) n;
     UPDATE ${schema}.feed SET last = ${tenth + 1}`,
  )
  const old = ofDead(share, String(now - 3 * DAY), String(now))
  query(
    cluster,
    `INSERT INTO ${schema}.bucket SELECT 'a:' || md5(n::text), 1, ${old}, '' FROM generate_series(1, ${rows}) n;
     INSERT INTO ${schema}.lockout SELECT md5(n::text), 1, ${old}, 0, NULL FROM generate_series(1, ${rows}) n`,
  )
  query(cluster, 'ANALYZE')
}

const left = (): string =>
  query(
    cluster,
    `SELECT (SELECT count(*) FROM ${schema}.record WHERE expires_at <= ${Date.now()}) || ' records, '
       || (SELECT count(*) FROM ${schema}.change WHERE expires_at <= ${Date.now()}) || ' changes, '
       || (SELECT count(*) FROM ${schema}.bucket WHERE at < ${Date.now() - 2 * DAY}) || ' budgets, '
       || (SELECT count(*) FROM ${schema}.lockout WHERE last_at < ${Date.now() - 2 * DAY}) || ' lockouts'`,
  )

const LEFT_NOTHING = '0 records, 0 changes, 0 budgets, 0 lockouts'

async function purgeAll(share: number): Promise<boolean> {
  fill(share)
  const before = left()
  const times: number[] = []
  const begun = performance.now()
  for (let removed = 1; removed > 0;) {
    const start = performance.now()
    removed = await store.purge(BATCH)
    times.push(performance.now() - start)
  }
  const seconds = (performance.now() - begun) / 1000
  times.sort((one, other) => one - other)
  const at = (part: number): string => (times[Math.floor(part * (times.length - 1))] ?? 0).toFixed(1)
  console.log(
    `${share * 100} % dead (${before}): ${times.length} rounds in ${seconds.toFixed(0)} s; median ${at(0.5)} ms, ` +
      `99 % ${at(0.99)}, longest ${at(1)} ms; left: ${left()}`,
  )
  return (times.at(-1) ?? 0) <= LONGEST && left() === LEFT_NOTHING
}

/** Records that end at once, made as fast as four writers can while the service's purging goes on. */
async function keepUp(): Promise<boolean> {
  query(cluster, `TRUNCATE ${schema}.bucket, ${schema}.lockout`)
  const stop = startPurging({
    store,
    recorder: { note: (...noted) => console.log(...noted) },
    random: () => 0,
    after: (ms, work) => {
      const timer = setTimeout(work, Math.min(ms, 100))
      return () => clearTimeout(timer)
    },
  })
  let made = 0
  const end = performance.now() + SECONDS * 1000
  const write = async (): Promise<void> => {
    while (performance.now() < end) {
      await store.create('made', `key-${(made += 1)}`, { value: {}, expiresAt: Date.now() + 1 })
    }
  }
  await Promise.all([write(), write(), write(), write()])
  await pause(1000)
  stop()
  console.log(`${made} records made in ${SECONDS} s, which ended at once; a second later stay: ${left()}`)
  return left() === LEFT_NOTHING
}

const outcomes: boolean[] = []
for (const share of SHARES) outcomes.push(await purgeAll(share))
outcomes.push(await keepUp())
await store.close()
await cluster.remove()
process.exitCode = outcomes.every(Boolean) ? 0 : 1
