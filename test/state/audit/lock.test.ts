import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { announcedService, runningService, tryLock } from '../../../src/state/audit/write/lock.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { ROOT } from '../../support/spawn-postern.ts'

/**
 * A process that takes the lock, says so, and keeps it until it is killed, or this process ends: that closes its input. A lock that
 * nothing refers to is collected, and ends.
 */
async function holder(folder: string) {
  const program = `
    const { tryLock } = await import(${JSON.stringify(join(ROOT, 'src/state/audit/write/lock.ts'))})
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
