/**
 * How memory goes back to the system. glibc and V8 read their settings before a program begins, so they are in the
 * environment and before the program's name. The image gives all of them, the unit and `npm start` those of the
 * environment. A service that was started without one of them starts itself once more, in the same process. Worker processes
 * inherit them.
 *
 * As glibc comes, it keeps the 19 MiB of each password hash in an arena of each thread that has ever computed one: 118 MB
 * for ever. test/long/load/README.md tells what each setting saves and costs.
 */
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { withoutDebugger } from '../../base/kernel/no-debugger.ts'

/**
 * Large blocks come from the system and go back to it; in huge pages where the system has them on request, because 4,900
 * small ones would cost each hash 14 ms of a processor instead of 3. Other C libraries do this of their own, and do not
 * know the variable. Not from 128 KiB on: a body of an answer would come from the system each time. Two arenas are enough,
 * since calls are served by one thread.
 */
export const MALLOC_SETTINGS =
  'glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2:glibc.malloc.mmap_threshold=2097152'

/** Else the young generation grows to twice as much under load, and stays so. */
export const HEAP_SETTINGS = '--max-semi-space-size=16'

/**
 * V8 collects what an idle thread holds after 8 s. When a thread ends, V8 leaves its pages to another one, which gives them
 * back when it next runs; the thread of the trail may sleep for long. After a load of large conversions 200 MB stayed
 * for 15 s.
 */
export const COLLECTION = [
  '--memory-reducer-delay-ms=1000',
  '--memory-pool-timeout=1',
  '--no-memory-pool-share-memory-on-teardown',
]

/** The versions of V8 that are known to have them (Node 26): V8 complains of an option that it lacks. */
const KNOWN_V8 = /^14\.(?:[6-9]|\d\d)\./

/**
 * The size of the young generation was read when this process began. Taken back, it leaves threads the limits of their own,
 * over which it would go.
 */
const ONLY_MAIN = '--max-semi-space-size=0'

/**
 * To be called before anything is compiled: V8 takes from the compile cache only what was compiled with the same options,
 * so every command and every process has them.
 */
export function collectSoon({ v8 }: Pick<NodeJS.ProcessVersions, 'v8'>, set = setFlagsFromString): void {
  set(ONLY_MAIN)
  if (KNOWN_V8.test(v8)) for (const option of COLLECTION) set(option)
}

/**
 * Settings of an operator: if there are any, nothing is changed. Settings that are ours were set by the image, the unit
 * or npm.
 */
const SET_BEFORE = /^(?:GLIBC_TUNABLES$|MALLOC_)/

/**
 * Set in a process that was started once more. The settings alone do not tell: the system takes them out of the environment
 * of a program that has rights of its own, such as a `node` that may open port 443.
 */
const STARTED_AGAIN = 'POSTERN_STARTED_AGAIN'

/** Starts the process anew, with these settings, unless it has some, or another process has opened a channel to it. */
export function startWithAllocator(process: NodeJS.Process, hasGlibc = usesGlibc): void {
  const { argv, env, execArgv, execPath, platform, versions } = process
  if (platform !== 'linux' || argv[2] !== 'serve' || 'send' in process || STARTED_AGAIN in env) return
  const isOurs = env['GLIBC_TUNABLES'] === MALLOC_SETTINGS
  if ((!isOurs && Object.keys(env).some((name) => SET_BEFORE.test(name))) || !hasGlibc()) return
  // Node 24 ends where the system does not let it start anew; a later one continues.
  if (!KNOWN_V8.test(versions.v8)) return
  // V8 heeds some of them only as it begins: set later, they leave 30 to 250 MB after conversions, not 13 to 114.
  const ofV8 = COLLECTION.filter((option) => !execArgv.includes(option))
  if (isOurs && ofV8.length === 0) return
  // An operator's own options come last, and count.
  const given = env['NODE_OPTIONS'] ?? ''
  const options = isOurs ? given : `${HEAP_SETTINGS} ${given}`.trim()
  const settings = { GLIBC_TUNABLES: MALLOC_SETTINGS, NODE_OPTIONS: options, [STARTED_AGAIN]: '1' }
  const warn = Object.getOwnPropertyDescriptor(process, 'emitWarning')
  // Node warns that `execve` is experimental, which would be seen where it throws.
  process.emitWarning = () => undefined
  try {
    const args = [execPath, ...withoutDebugger([...ofV8, ...execArgv]), ...argv.slice(1)]
    process.execve?.(execPath, args, { ...env, ...settings })
  } catch {
    // Not allowed here, such as by Node's permission model: the service works without, and keeps more memory.
  } finally {
    if (warn) Object.defineProperty(process, 'emitWarning', warn)
  }
}

/** The list of what a process has loaded names the C library. `process.report` names it too, and takes 20 ms. */
function usesGlibc(): boolean {
  try {
    return /\/libc[.-]/.test(readFileSync('/proc/self/maps', 'latin1'))
  } catch {
    return false
  }
}
