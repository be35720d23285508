/** A service that starts while another one writes the trail in its folder: it waits for that one's end (C12.4). */
import { hostname } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { startPostern as start } from '../../../src/serve/start/service.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { tryLock } from '../../../src/operate/trail/lock.ts'
import { readChains } from './support/audit-chain.ts'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { giveKey } from '../../support/ready-key.ts'
import { atEnd } from '../../support/shared.ts'
import { DEMO, spawnPostern, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { configurationOf } from '../../support/start-postern.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { poolConfig } from '../../support/worker-pool.ts'
import { withAudit } from '../../support/with-audit.ts'

type Changes = (configuration: Configuration) => Configuration

const onAdminPort =
  (port: number): Changes =>
  (configuration) => ({
    ...configuration,
    admin: { ...configuration.admin, listen: `127.0.0.1:${port}` },
  })

const withTrailIn =
  (folder: string): Changes =>
  (configuration) =>
    withAudit(configuration, { folder })

/** A data folder, and services on it that need not have started yet. */
async function place() {
  const data = await dataFolder()
  await giveKey(data)
  const begin = (...changes: readonly Changes[]) => {
    const lines: string[] = []
    const change: Changes = (configuration) => changes.reduce((so, far) => far(so), configuration)
    const { configuration, environment } = configurationOf({ keeps: 'trail', change }, data)
    let serves = false
    const starting = start(configuration, {
      clock: systemClock,
      environment,
      logDestination: { write: (line: string) => void lines.push(line) },
    })
    void starting.then(
      () => (serves = true),
      () => undefined,
    )
    atEnd(async () => {
      await (await starting.catch(() => undefined))?.close()
    })
    const events = (): readonly string[] =>
      lines
        .flatMap((text) => text.trim().split('\n'))
        .map((line) => (JSON.parse(line) as { event: string }).event)
    return { starting, serves: () => serves, events, log: () => lines.join('') }
  }
  return { data, folder: join(data, 'audit'), begin }
}

const readinessAt = async (port: number): Promise<{ status: number; text: string }> => {
  const response = await fetch(`http://127.0.0.1:${port}/health/ready`)
  return { status: response.status, text: await response.text() }
}

const startsIn = (folder: string): number =>
  [...readChains(folder).values()].flat().filter(({ event }) => event === 'service.started').length

describe('C12.4 a second service on the folder of a trail', () => {
  it('C12.4 waits, and log and readiness say for whom; it serves when the first has ended, and goes on with its chain', async () => {
    const { folder, begin } = await place()
    const first = await begin().starting
    const port = await freePort()
    const second = begin(onAdminPort(port))
    const told = `the service on ${hostname()} writes the trail in its folder: this service waits for its end`
    const { status, text } = await eventually(() => readinessAt(port))
    expect(status).toBe(503)
    expect(JSON.parse(text)).toMatchObject({
      failing: ['starting'],
      degraded: [{ name: 'audit trail', reason: `${told}, at most a minute` }],
    })
    // Its address is not for everybody who asks.
    expect(text).not.toContain(String(first.adminPort))
    expect(second.events()).toContain('audit_lock_awaited')
    expect(second.log()).toContain(told)
    expect(second.log()).toContain(`(${folder}, http://127.0.0.1:${first.adminPort})`)
    // The first one is disturbed by nothing.
    expect(await readinessAt(first.adminPort)).toMatchObject({
      status: 200,
      text: expect.stringContaining('"degraded":[]') as string,
    })
    expect(second.serves()).toBe(false)
    await first.close()
    const serving = await second.starting
    expect(serving.adminPort).toBe(port)
    // Nobody used the data folder with it.
    expect([serving.sharesData, second.events().includes('data_shared')]).toEqual([false, false])
    await eventually(async () =>
      expect(await readinessAt(port)).toMatchObject({
        status: 200,
        text: expect.stringContaining('"degraded":[]') as string,
      }),
    )
    await serving.close()
    const chains = readChains(folder)
    expect(chains.size).toBe(1)
    expect(startsIn(folder)).toBe(2)
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, foundLate: 0 })
  })

  it('C12.4 whose admin port is that of the first waits too, and starts then', async () => {
    const { folder, begin } = await place()
    const first = await begin().starting
    const second = begin(onAdminPort(first.adminPort))
    await eventually(() => expect(second.events()).toContain('audit_lock_awaited'))
    expect((await readinessAt(first.adminPort)).status).toBe(200)
    expect(second.serves()).toBe(false)
    await first.close()
    const serving = await second.starting
    expect(serving.adminPort).toBe(first.adminPort)
    expect((await readinessAt(serving.adminPort)).status).toBe(200)
    await serving.close()
    expect(readChains(folder).size).toBe(1)
    expect(startsIn(folder)).toBe(2)
  })

  it('C12.4 waits as a program too, with nothing that listens yet, and goes on with the chain of one with workers', async () => {
    const { data, folder } = await place()
    const upstream = await startUpstream()
    const config = configFiles({ 'a.yaml': poolConfig(upstream.url, WITHOUT_WAITS) })('a.yaml')
    const first = await spawnPostern({ config, environment: { POSTERN_DATA: data } })
    const waits = Promise.withResolvers<undefined>()
    const starting = spawnPostern({
      config,
      environment: { POSTERN_DATA: data, POSTERN_ADMIN_PORT: new URL(first.adminUrl).port },
      heard: (output) => output.includes('audit_lock_awaited') && waits.resolve(undefined),
    })
    atEnd(async () => {
      await (await starting).stop()
    })
    await Promise.race([waits.promise, starting])
    expect((await fetch(`${first.adminUrl}/health/ready`)).status).toBe(200)
    expect(startsIn(folder)).toBe(1)
    expect(await first.stop()).toBe(0)
    const second = await starting
    expect(second.adminUrl).toBe(first.adminUrl)
    expect(await second.stop()).toBe(0)
    expect(readChains(folder).size).toBe(1)
    expect(startsIn(folder)).toBe(2)
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, foundLate: 0 })
  })

  it('C12.4 that waits in vain ends with exit code 1, and says what to do', async () => {
    const { data, folder, begin } = await place()
    const first = await begin().starting
    const port = await freePort()
    const file = configFiles({ 'a.yaml': `extends: ${DEMO}\nstore: { kind: memory }\n` })('a.yaml')
    const env = { POSTERN_DATA: data, POSTERN_PORT: '0', POSTERN_ADMIN_PORT: String(port) }
    const served = runVerb(['serve', file], { env })
    await eventually(() => readinessAt(port))
    // A minute passes.
    const now = performance.now.bind(performance)
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61_000)
    const { code, stderr } = await served.finally(() => later.mockRestore())
    expect(code).toBe(1)
    expect(stderr).toContain(
      `the service on ${hostname()} (${folder}, http://127.0.0.1:${first.adminPort}) writes the audit trail, and has not ` +
        'ended within 60 s: stop it, or give this service a folder of its own (`audit.folder`).\n',
    )
    await expect(readinessAt(port)).rejects.toThrow()
    expect(startsIn(folder)).toBe(1)
    expect((await readinessAt(first.adminPort)).status).toBe(200)
  })

  it('C12.4 that has a folder of its own waits for nobody: both write, each its own trail', async () => {
    const { data, begin } = await place()
    const folders = [join(data, 'one'), join(data, 'two')]
    const services = folders.map((folder) => begin(withTrailIn(folder)))
    const running = await Promise.all(services.map(({ starting }) => starting))
    for (const [index, { events }] of services.entries()) {
      expect(events()).not.toContain('audit_lock_awaited')
      expect(tryLock(folders[index] ?? '')).toBeUndefined()
    }
    await Promise.all(running.map((service) => service.close()))
    const names = folders.flatMap((folder) => {
      expect(verifyTrail({ folder })).toMatchObject({ whole: true })
      expect(startsIn(folder)).toBe(1)
      return [...readChains(folder).keys()]
    })
    expect(new Set(names).size).toBe(2)
  })
})
