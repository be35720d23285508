/**
 * How memory goes back to the system. glibc and V8 read their settings at the start of a process only, so the service
 * starts itself once more, in the same process.
 *
 * As glibc comes, it keeps the 19 MiB of each password hash in an arena of each thread that has ever computed one: 118 MB
 * for good.
 *
 * Large blocks come from the system and go back to it; in huge pages where the system has them on request, since 4,900
 * small ones would cost each hash 14 ms of a processor instead of 3. Other C libraries do this of their own, and do not
 * know the variable.
 */
const SETTINGS = 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=2097152'

/**
 * V8 collects what an idle thread holds after 8 s. When a thread ends, V8 leaves its pages to another one, which gives them
 * back when it next runs; the thread of the audit trail may sleep for long. After a load of large conversions 200 MB stayed
 * for 15 s. These options come first, so that an operator's own of the same name count.
 */
const V8_SETTINGS = [
  '--memory-reducer-delay-ms=1000',
  '--memory-pool-timeout=1',
  '--no-memory-pool-share-memory-on-teardown',
]

/** The versions of V8 that are known to have them (Node 26): Node does not start with an option that its V8 lacks. */
const KNOWN_V8 = /^14\.(?:[6-9]|\d\d)\./

/** What an operator may have set: then nothing is changed. */
const SET_BEFORE = /^(?:GLIBC_TUNABLES$|MALLOC_)/

/** Starts the process anew, with these settings, unless it has some, or another process has opened a channel to it. */
export function startWithAllocator(process: NodeJS.Process): void {
  const { argv, env, execArgv, execPath, platform, versions } = process
  if (platform !== 'linux' || argv[2] !== 'serve' || 'send' in process) return
  if (Object.keys(env).some((name) => SET_BEFORE.test(name))) return
  const ofV8 = KNOWN_V8.test(versions.v8) ? V8_SETTINGS : []
  const args = [execPath, ...ofV8, ...execArgv, ...argv.slice(1)]
  try {
    process.execve?.(execPath, args, { ...env, GLIBC_TUNABLES: SETTINGS })
  } catch {
    // Not allowed here, such as by Node's permission model: the service works without, and keeps more memory.
  }
}
