import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { bytesOf } from '../support/attacked.ts'
import { configFiles } from '../support/config-files.ts'
import { UPSTREAM_WORLD } from '../support/crew.ts'
import { descriptorsOf, heapOf, weighed } from '../support/footprint.ts'
import { openRaw, sendRaw, type RawConnection } from '../support/raw-http.ts'
import { spawnPostern } from '../support/spawn-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const MANY = 10_000
/** Connections that are begun together: fewer than the kernel lets wait. */
const BATCH = 500
const MIB = 1024 ** 2

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'

/** In a process of its own, since descriptors are limited per process: one here and one there for each connection. */
const CONFIGURATION = `
extends: ${UPSTREAM_WORLD}
server: { timeouts: { headers: 5s, request: 5s, keepAlive: 5s } }
load: { clients: { inFlight: ${2 * MANY} }, backends: { inFlight: ${2 * MANY} } }
log: { calls: none }
`

it(`T5.3 of ${MANY} connections that were opened and left, in every state, nothing remains`, async () => {
  const upstream = await startUpstream(({ socket }) => {
    socket.end('HTTP/1.1 204 N\r\nConnection: close\r\n\r\n')
  })
  const gateway = await spawnPostern({
    config: configFiles({ 'postern.yaml': CONFIGURATION })('postern.yaml'),
    environment: { UPSTREAM_URL: upstream.url, ...weighed },
  })
  onTestFinished(async () => {
    await gateway.stop()
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const authorization = `Authorization: Bearer ${access_token}\r\n`
  const call = bytesOf({ target: LIST, lines: authorization })
  const lines = `${authorization}Content-Type: application/json\r\nContent-Length: 9\r\n`
  const states = [
    '',
    'GET / HT',
    call,
    bytesOf({ method: 'POST', target: LIST, lines: 'Content-Length: 9\r\n' }),
    bytesOf({ method: 'POST', target: DETAIL, lines, body: '{"' }),
  ]
  const cleanCall = async (): Promise<number> => (await sendRaw(gateway.port, call)).status

  /** Opens them all, so that all that are kept are open at once; then half of the clients leave, and half just stay. */
  const openAndLeave = async (): Promise<void> => {
    const clients: RawConnection[] = []
    while (clients.length < MANY) {
      // Each source address has ports of its own.
      const from = `127.0.0.${2 + ((clients.length / BATCH) % 5)}`
      const batch = await Promise.all(Array.from({ length: BATCH }, () => openRaw(gateway.port, from)))
      for (const [index, client] of batch.entries()) client.send(states[index % states.length] ?? '')
      clients.push(...batch)
      expect(await cleanCall()).toBe(200)
    }
    expect(descriptorsOf(gateway)).toBeGreaterThan(MANY / 2)
    for (const client of clients.slice(0, MANY / 2)) client.destroy()
    expect(await cleanCall()).toBe(200)
    await Promise.all(clients.map((client) => client.closed()))
    for (const client of clients) client.destroy()
  }
  const settled = async (): Promise<number> => {
    while (descriptorsOf(gateway) > empty + 20) await wait(50)
    upstream.requests.splice(0)
    upstream.connections.splice(0)
    expect(await cleanCall()).toBe(200)
    return heapOf(gateway)
  }

  expect(await cleanCall()).toBe(200)
  const empty = descriptorsOf(gateway)
  await openAndLeave()
  const before = await settled()
  await openAndLeave()
  expect((await settled()) - before).toBeLessThan(4 * MIB)
}, 90_000)
