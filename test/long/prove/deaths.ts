/**
 * Orders while a worker dies (T5.9): POST /reload with two workers, and kill -9 of one 0 to 5 ms later, again and again.
 * Each time: does the reload end, does one more, and a restart; at last, does SIGTERM. Then a worker that is frozen.
 *
 *     node test/long/prove/deaths.ts [TRIES] [ROOT]
 */
import {
  childrenOf,
  isAlive,
  killAll,
  pause,
  startProvenCrew,
  startSlowUpstream,
  type ProvenCrew,
} from './proven-pool.ts'

const tries = Number(process.argv[2] ?? 100)
const root = process.argv[3]
const options = root === undefined ? {} : { root }
const ENDS_MS = 30_000
const { url, server } = await startSlowUpstream()

const ends = (order: Promise<unknown>): Promise<boolean> =>
  order.then(
    () => true,
    () => false,
  )

async function untilTwo(pool: ProvenCrew, ms: number): Promise<boolean> {
  for (const until = performance.now() + ms; performance.now() < until;) {
    if (pool.workers().length === 2) return true
    await pause(20)
  }
  return false
}

async function stopped(pid: number, ms: number): Promise<boolean> {
  const workers = childrenOf(pid)
  process.kill(pid, 'SIGTERM')
  for (const until = performance.now() + ms; performance.now() < until;) {
    if (!isAlive(pid) && !workers.some(isAlive)) return true
    await pause(20)
  }
  for (const each of workers) if (isAlive(each)) process.kill(each, 'SIGKILL')
  killAll(pid)
  return false
}

async function killed(): Promise<void> {
  const counts = { tries: 0, hung: 0, refused: 0, reloaded: 0 }
  let pool = await startProvenCrew(url, options)
  let stops = 0
  let hangingStops = 0
  const renew = async (): Promise<void> => {
    stops += 1
    if (!(await stopped(pool.pid, ENDS_MS))) hangingStops += 1
  }
  for (let count = 0; count < tries; count++) {
    counts.tries += 1
    const reload = pool.order('/reload', 20_000)
    void reload.catch(() => undefined)
    await pause((count % 6) * 1)
    const [victim = 0] = pool.workers().slice(count % 2)
    process.kill(victim, 'SIGKILL')
    const outcome = await reload.catch(() => undefined)
    if (outcome === undefined) {
      counts.hung += 1
      await renew()
      pool = await startProvenCrew(url, options)
      continue
    }
    if (JSON.stringify(outcome).includes('"refused"')) counts.refused += 1
    else counts.reloaded += 1
    // A worker that dies young is replaced after a pause, and that pause grows: steady again.
    await untilTwo(pool, 40_000)
    await pause(200)
  }
  const later = [await ends(pool.order('/reload', ENDS_MS)), await ends(pool.order('/restart', ENDS_MS))]
  await renew()
  console.log('kill -9 within a reload:', counts, 'reload and restart afterwards end:', later)
  console.log(`SIGTERM: ${hangingStops} of ${stops} hung`)
}

async function frozen(): Promise<void> {
  const pool = await startProvenCrew(url, options)
  const [victim = 0] = pool.workers()
  const since = performance.now()
  process.kill(victim, 'SIGSTOP')
  let gone: number | undefined
  let replaced: number | undefined
  while (performance.now() - since < ENDS_MS && replaced === undefined) {
    await pause(20)
    if (gone === undefined && !isAlive(victim)) gone = performance.now() - since
    if (gone !== undefined && pool.output().split('worker_started').length > 3)
      replaced = performance.now() - since
  }
  console.log(
    'SIGSTOP of a worker: killed after',
    gone?.toFixed(0),
    'ms, replaced after',
    replaced?.toFixed(0),
    'ms',
  )
  const [other = 0] = pool.workers()
  process.kill(other, 'SIGSTOP')
  const began = performance.now()
  const reloaded = await ends(pool.order('/reload', ENDS_MS))
  console.log(
    'reload with a frozen worker ends:',
    reloaded,
    'after',
    (performance.now() - began).toFixed(0),
    'ms',
  )
  const [third = 0] = pool.workers()
  process.kill(third, 'SIGSTOP')
  const told = performance.now()
  console.log(
    'SIGTERM with a frozen worker ends, with no orphan:',
    await stopped(pool.pid, ENDS_MS),
    'after',
    (performance.now() - told).toFixed(0),
    'ms',
  )
}

await killed()
await frozen()
server.close()
server.closeAllConnections()
