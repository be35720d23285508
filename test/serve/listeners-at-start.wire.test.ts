import { createServer, type Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { configFiles } from '../support/config-files.ts'
import { freePort } from '../support/free-port.ts'
import { DEMO, spawnPostern } from '../support/spawn-postern.ts'
import { startPostern } from '../support/start-postern.ts'
import { UPSTREAM_WORLD } from '../support/worker-pool.ts'

const WORKERS = `extends: ${UPSTREAM_WORLD}\nworkers: 2\naudit: { enabled: false }\n`
const ONE = `extends: ${DEMO}\nstore: { kind: memory }\naudit: { enabled: false }\n`

/** A port that another program has. */
async function takenPort(): Promise<number> {
  const port = await freePort()
  const server: Server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return port
}

/** Asks until the first answer, or until the end is told. Undefined if none came. */
async function firstAnswer(url: string, ended: () => boolean): Promise<number | undefined> {
  while (!ended()) {
    const status = await fetch(url).then(
      (response) => response.status,
      () => undefined,
    )
    if (status !== undefined) return status
    await nextTurn()
  }
  return undefined
}

const configOf = (workers: number): string =>
  configFiles({ 'postern.yaml': workers === 1 ? ONE : WORKERS })('postern.yaml')

describe('C11.1.1 the listeners at a start', () => {
  it.each([1, 2])(
    'C11.1.1 a port of the admin listener that is taken ends it before a client has had an answer (%i processes)',
    async (workers) => {
      const [port, adminPort] = [await freePort(), await takenPort()]
      const environment = { POSTERN_PORT: String(port), POSTERN_ADMIN_PORT: String(adminPort) }
      let ended = false
      const started = spawnPostern({ config: configOf(workers), environment }).then(
        (postern) => postern.stop(),
        (error: unknown) => String(error),
      )
      void started.then(() => (ended = true))
      const asked = firstAnswer(`http://127.0.0.1:${port}/.well-known/jwks.json`, () => ended)
      expect(await started).toMatch(
        /postern: admin\.listen: listen EADDRINUSE: .*: another process uses this port; end it, or set another port/,
      )
      expect(await asked).toBeUndefined()
    },
  )

  it('C11.1.1 the admin listener answers when the public one does', async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const environment = { POSTERN_PORT: String(port), POSTERN_ADMIN_PORT: String(adminPort) }
    const starting = startPostern({ environment, keeps: 'nothing' })
    const asked = firstAnswer(`http://127.0.0.1:${port}/.well-known/jwks.json`, () => false)
    expect(await asked).toBe(200)
    expect((await fetch(`http://127.0.0.1:${adminPort}/health/ready`)).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${adminPort}/metrics`)).status).toBe(200)
    await (await starting).close()
  })

  it('C11.1.1 a port of the public listener that is taken closes the admin listener again', async () => {
    const [port, adminPort] = [await takenPort(), await freePort()]
    const environment = { POSTERN_PORT: String(port), POSTERN_ADMIN_PORT: String(adminPort) }
    await expect(startPostern({ environment, keeps: 'nothing' })).rejects.toThrow(
      /^server\.listen: listen EADDRINUSE/,
    )
    const server = createServer()
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(adminPort, '127.0.0.1', resolve)
    })
    server.close()
  })

  it('C11.1.1 a port for probes that is taken closes the admin listener again', async () => {
    const [probes, adminPort] = [await takenPort(), await freePort()]
    const environment = { POSTERN_ADMIN_PORT: String(adminPort) }
    const change = <T extends { readonly admin: object }>(configuration: T): T => ({
      ...configuration,
      admin: { ...configuration.admin, probes: `127.0.0.1:${probes}` },
    })
    await expect(startPostern({ environment, keeps: 'nothing', change })).rejects.toThrow(
      /^admin\.probes: listen EADDRINUSE/,
    )
    await expect(fetch(`http://127.0.0.1:${adminPort}/health/live`)).rejects.toThrow()
  })
})
