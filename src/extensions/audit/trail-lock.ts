/** The lock under which a service writes its trail, and the wait for it where another one has it (C12.4). */
import { announcedService, type TrailLock, tryLock } from '../../operate/trail/lock.ts'
import { type After, after as systemAfter, type Clock, systemClock } from '../../base/kernel/clock.ts'
import { AuditFolderError } from './write/folder.ts'

/** How long a service waits until another one has ended, in milliseconds. */
const PATIENCE = 60_000
/** The time between two attempts to take the lock, in milliseconds. */
const PERIOD = 250

interface WaitParts {
  readonly clock?: Pick<Clock, 'monotonic'>
  readonly after?: After | undefined
}

/** The process that has the lock of a folder, for people: without its address, as anybody may ask for the readiness. */
export function holderOf(folder: string): string {
  const service = announcedService(folder)
  return service === undefined ? 'another process' : `the service on ${service.host}`
}

/** Where it can be found, for the log: its folder, and its admin listener if it tells that. */
export const placeOfHolder = (folder: string): string =>
  [folder, announcedService(folder)?.adminUrl].filter((each) => each !== undefined).join(', ')

/** Waits for the lock of a folder. Rejects with AuditFolderError after a minute, and with the system's error. */
export async function waitForLock(
  folder: string,
  { clock = systemClock, after = systemAfter }: WaitParts = {},
): Promise<TrailLock> {
  const deadline = clock.monotonic() + PATIENCE
  // Nothing else keeps the process alive.
  using alive = new DisposableStack()
  alive.adopt(
    setInterval(() => undefined, PERIOD),
    clearInterval,
  )
  for (;;) {
    const lock = tryLock(folder)
    if (lock !== undefined) return lock
    if (clock.monotonic() >= deadline)
      throw new AuditFolderError(
        `${holderOf(folder)} (${placeOfHolder(folder)}) writes the audit trail, and has not ended within ${PATIENCE / 1000} s: stop it, ` +
          'or give this service a folder of its own (`audit.folder`).',
      )
    await new Promise<void>((resolve) => void after(PERIOD, resolve))
  }
}
