import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { announcedService, runningService, tryLock } from '../../../src/operate/trail/lock.ts'
import { waitForLock } from '../../../src/extensions/audit/trail-lock.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock, type MovableClock } from '../../support/movable-clock.ts'
import { ROOT } from '../../support/spawn-postern.ts'

/**
 * A process that takes the lock, says so, and keeps it until it is killed, or this process ends: that closes its input. A lock that
 * nothing refers to is collected, and ends.
 */
async function holder(folder: string) {
  const program = `
    const { tryLock } = await import(${JSON.stringify(join(ROOT, 'src/operate/trail/lock.ts'))})
    globalThis.kept = tryLock(${JSON.stringify(folder)})
    kept.announce({ adminUrl: 'http://127.0.0.1:1' })
    process.stdout.write('held')
    process.stdin.on('end', () => process.exit()).resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

describe('the lock of a trail’s folder', () => {
  it('C12.1.7 is held by one at a time, also within one process', async () => {
    const folder = join(await dataFolder(), 'audit')
    const first = tryLock(folder)
    expect(tryLock(folder)).toBeUndefined()
    first?.release()
    const second = tryLock(folder)
    expect(second).toBeDefined()
    second?.release()
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder, 'writer.lock')).mode & 0o777).toBe(0o600)
  })

  it('C12.1.7 is not given back while work under it may still run: it ends with the process', async () => {
    const folder = join(await dataFolder(), 'audit')
    const lock = tryLock(folder)
    lock?.keep()
    lock?.release()
    expect(tryLock(folder)).toBeUndefined()
  })

  it('C12.1.7 ends with a process that was killed, and what that had announced ends with it', async () => {
    const folder = await dataFolder()
    const child = await holder(folder)
    expect(tryLock(folder)).toBeUndefined()
    expect(announcedService(folder)).toMatchObject({ adminUrl: 'http://127.0.0.1:1' })
    child.kill('SIGKILL')
    await once(child, 'exit')
    const lock = tryLock(folder)
    expect(lock).toBeDefined()
    expect(announcedService(folder)).toBeUndefined()
    lock?.release()
  })

  it('C12.1.7 tells commands of a service that runs, and of none that was killed', async () => {
    const folder = await dataFolder()
    expect(runningService(folder)).toBeUndefined()
    const child = await holder(folder)
    expect(runningService(folder)).toMatchObject({ adminUrl: 'http://127.0.0.1:1' })
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(announcedService(folder)).toMatchObject({ adminUrl: 'http://127.0.0.1:1' })
    expect(runningService(folder)).toBeUndefined()
  })
})

/** Time passes in the steps in which the lock is tried, and each try comes to its end. */
async function pass(clock: MovableClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    clock.advance(250)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a service whose folder another process has', () => {
  it('C12.4.4 takes the lock at once where nobody has it', async () => {
    const clock = movableClock()
    const lock = await waitForLock(await dataFolder(), { clock, after: clock.after })
    expect(clock.timers()).toBe(0)
    lock.release()
  })

  it('C12.4.4 waits for the end of that one, and takes the lock then', async () => {
    const folder = await dataFolder()
    const clock = movableClock()
    const before = tryLock(folder)
    let lock: Awaited<ReturnType<typeof waitForLock>> | undefined
    const waiting = waitForLock(folder, { clock, after: clock.after }).then((taken) => (lock = taken))
    await pass(clock, 59_000)
    expect(lock).toBeUndefined()
    before?.release()
    await pass(clock, 250)
    await waiting
    expect(tryLock(folder)).toBeUndefined()
    lock?.release()
  })

  it.each([
    [/^the service on .+ \(.+, http:\/\/127\.0\.0\.1:8081\) writes the audit trail/, true],
    [/^another process \(.+\) writes the audit trail/, false],
  ])('C12.4.4 ends after a minute, and says who has it: %s', async (holder, announces) => {
    const folder = await dataFolder()
    const clock = movableClock()
    const before = tryLock(folder)
    if (announces) before?.announce({ adminUrl: 'http://127.0.0.1:8081' })
    const refused = waitForLock(folder, { clock, after: clock.after }).catch((thrown: unknown) => thrown)
    await pass(clock, 60_000)
    const error = await refused
    expect(error).toMatchObject({ name: 'AuditFolderError' })
    expect((error as Error).message).toMatch(holder)
    expect((error as Error).message).toContain('give this service a folder of its own (`audit.folder`)')
    expect(clock.timers()).toBe(0)
    before?.release()
  })

  it('C12.4.4 does not wait where the folder cannot be used', async () => {
    const folder = join(await dataFolder(), 'file')
    writeFileSync(folder, '')
    const clock = movableClock()
    await expect(waitForLock(folder, { clock, after: clock.after })).rejects.toThrow(/EEXIST|ENOTDIR/)
  })
})
