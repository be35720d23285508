import { setTimeout as wait } from 'node:timers/promises'
import { bytesOf } from './attacked.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UPSTREAM_WORLD } from './worker-pool.ts'
import { descriptorsOf, heapOf, weighed } from './footprint.ts'
import { openRaw, sendRaw, type RawConnection } from './raw-http.ts'
import { spawnPostern } from './spawn-postern.ts'
import { openUpstream } from './start-upstream.ts'
import { ALL_AT_ACME, issueToken } from './tokens.ts'

/** Connections that are begun together: fewer than the kernel lets wait. */
const BATCH = 500

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'

/** In a process of its own, since descriptors are limited per process: one here and one there for each connection. */
const configuration = (many: number): string => `
extends: ${UPSTREAM_WORLD}
server: { timeouts: { headers: 2s, request: 2s, keepAlive: 2s, lameDuck: 0s, silence: 0s } }
load: { clients: { inFlight: ${2 * many} }, backends: { inFlight: ${2 * many} } }
log: { calls: none }
`

export interface Abandoned {
  /** The most descriptors that were open at once. */
  readonly most: number
  /** Bytes of heap that the second of two rounds has added. */
  readonly added: number
}

/** Opens so many connections in every state, lets half of the clients leave and the others stay; and all of it again. */
export async function abandonConnections(many: number, folder: string): Promise<Abandoned> {
  const file = join(folder, 'postern.yaml')
  writeFileSync(file, configuration(many))
  const upstream = await openUpstream(({ socket }) => {
    socket.end('HTTP/1.1 204 N\r\nConnection: close\r\n\r\n')
  })
  const gateway = await spawnPostern({
    config: file,
    environment: { UPSTREAM_URL: upstream.url, ...weighed },
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
  const cleanCall = async (): Promise<void> => {
    const { status } = await sendRaw(gateway.port, call)
    if (status !== 200) throw new Error(`a clean call was answered ${status}`)
  }
  let [empty, most] = [0, 0]

  /** Opens them all, so that all that are kept are open at once; then half of the clients leave, and half just stay. */
  const openAndLeave = async (): Promise<void> => {
    const clients: RawConnection[] = []
    while (clients.length < many) {
      // Each source address has ports of its own.
      const from = `127.0.0.${2 + (Math.floor(clients.length / BATCH) % 5)}`
      const batch = await Promise.all(
        Array.from({ length: Math.min(BATCH, many - clients.length) }, () => openRaw(gateway.port, from)),
      )
      for (const [index, client] of batch.entries()) client.send(states[index % states.length] ?? '')
      clients.push(...batch)
      await cleanCall()
    }
    most = Math.max(most, descriptorsOf(gateway))
    for (const client of clients.slice(0, many / 2)) client.destroy()
    await cleanCall()
    await Promise.all(clients.map((client) => client.closed()))
    for (const client of clients) client.destroy()
  }
  const settled = async (): Promise<number> => {
    while (descriptorsOf(gateway) > empty + 20) await wait(50)
    upstream.requests.splice(0)
    upstream.connections.splice(0)
    await cleanCall()
    return heapOf(gateway)
  }

  try {
    await cleanCall()
    empty = descriptorsOf(gateway)
    await openAndLeave()
    const before = await settled()
    await openAndLeave()
    return { most, added: (await settled()) - before }
  } finally {
    await gateway.stop()
    await upstream.close()
  }
}
