import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { NO_HEADERS } from '../../../src/base/http/head/header-text.ts'
import type { ConnectionOwner, PooledConnection } from '../../../src/gateway/upstream/connection.ts'
import { ConnectionQueue } from '../../../src/gateway/upstream/pool.ts'
import { UpstreamReader, type UpstreamSource } from '../../../src/gateway/upstream/reader.ts'
import type { UpstreamRequest } from '../../../src/gateway/upstream/request.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { faulty } from '../../support/upstream-connections.ts'

/** A connection without a socket: the test says when a call on it is answered and when it ends. */
class FakeConnection implements PooledConnection, UpstreamSource {
  readonly singleUse: boolean
  readonly paths: string[] = []
  readonly #owner: ConnectionOwner
  #reader: UpstreamReader | undefined
  #isClosed = false

  constructor(owner: ConnectionOwner, singleUse: boolean) {
    this.#owner = owner
    this.singleUse = singleUse
  }

  get isFree(): boolean {
    return this.paths.length > 0 && this.#reader === undefined && !this.#isClosed
  }

  send({ path }: UpstreamRequest, reader: UpstreamReader): void {
    if (this.#isClosed || this.#reader !== undefined) throw new Error('used while it is not free')
    this.paths.push(path)
    this.#reader = reader
    reader.begin(this)
  }

  answer(): void {
    const reader = this.#reader
    this.#reader = undefined
    reader?.head({ status: 200, headers: {}, framing: 0, persistent: true })
    reader?.end()
    this.#owner.freed(this)
  }

  abort(reason: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#owner.closed(this)
    this.#reader?.fail(reason)
  }

  close(): void {
    this.abort(new Error('closed'))
  }

  pause(): void {
    throw new Error('nothing streams here')
  }

  resume(): void {
    throw new Error('nothing streams here')
  }
}

function openQueue({ maxConnections = 2, canOpen = (): boolean => true } = {}) {
  const connections: FakeConnection[] = []
  const manual = manualAfter()
  let stray = 0
  const queue = new ConnectionQueue(
    {
      open: (owner, singleUse) => {
        if (!canOpen()) throw new Error('no socket')
        const connection = new FakeConnection(owner, singleUse)
        connections.push(connection)
        return connection
      },
      maxConnections,
      maxWait: 1000,
      strayBytes: () => (stray += 1),
    },
    manual.after,
  )
  const outcomes = new Map<string, unknown>()
  const send = (path: string): UpstreamReader => {
    const request = { method: 'GET', path, headers: NO_HEADERS, host: undefined, body: undefined }
    const reader = new UpstreamReader(
      { eager: true },
      (error, response) => outcomes.set(path, error ?? response?.statusCode),
      () => undefined,
    )
    queue.send({ ...request, length: undefined, eager: true, fresh: false, timeouts: undefined }, reader)
    return reader
  }
  const paths = (): string[][] => connections.map((connection) => connection.paths)
  return { queue, connections, send, outcomes, paths, manual, stray: () => stray }
}

/** Two turns of the event loop: a connection rests in one and serves in the next. */
const turns = async (): Promise<void> => {
  await turn()
  await turn()
}

describe('a queue of connections', () => {
  it('C8.4 a call beyond the free connections opens one at once, whatever was assigned before', async () => {
    const { connections, send, paths } = openQueue({ maxConnections: 3 })
    send('/a')
    connections[0]!.answer()
    await turns()
    send('/b')
    send('/c')
    expect(paths()).toEqual([['/a'], ['/c']])
    await turns()
    expect(paths()).toEqual([['/a', '/b'], ['/c']])
  })

  it('T2.8 gives an answered connection its next call no sooner than a turn of the event loop later', async () => {
    const { connections, send, paths } = openQueue()
    send('/a')
    connections[0]!.answer()
    send('/b')
    expect(paths()).toEqual([['/a']])
    await turns()
    expect(paths()).toEqual([['/a', '/b']])
  })

  it('T2.8 gives the call a new connection where the answered one ends within that turn', async () => {
    const { connections, send, paths, outcomes } = openQueue()
    send('/a')
    connections[0]!.answer()
    send('/b')
    connections[0]!.close()
    await turns()
    expect(paths()).toEqual([['/a'], ['/b']])
    connections[1]!.answer()
    expect(outcomes.get('/b')).toBe(200)
  })

  it('T5.4 opens no more connections than it may; further calls wait, the oldest is next', async () => {
    const { connections, send, paths } = openQueue()
    for (const path of ['/a', '/b', '/c', '/d']) send(path)
    expect(paths()).toEqual([['/a'], ['/b']])
    connections[1]!.answer()
    await turns()
    expect(paths()).toEqual([['/a'], ['/b', '/c']])
    connections[0]!.answer()
    await turns()
    expect(paths()).toEqual([
      ['/a', '/d'],
      ['/b', '/c'],
    ])
  })

  it('T5.4 lets no later call overtake one that waits', async () => {
    const { connections, send, paths } = openQueue({ maxConnections: 1 })
    send('/a')
    send('/b')
    connections[0]!.answer()
    send('/c')
    await turns()
    connections[0]!.answer()
    await turns()
    expect(paths()).toEqual([['/a', '/b', '/c']])
  })

  it('T5.4 gives a waiting call the place of a connection that ends', () => {
    const { connections, send, paths } = openQueue({ maxConnections: 1 })
    send('/a')
    send('/b')
    connections[0]!.close()
    expect(paths()).toEqual([['/a'], ['/b']])
  })

  it('T5.4 fails a call that waits too long, and never sends it', async () => {
    const { connections, send, paths, outcomes, manual } = openQueue({ maxConnections: 1 })
    send('/a')
    send('/b')
    expect(manual.delays()).toEqual([1000])
    await manual.fire()
    expect(outcomes.get('/b')).toEqual(faulty('upstream_timeout'))
    connections[0]!.answer()
    await turns()
    expect(paths()).toEqual([['/a']])
  })

  it('T5.4 stops the timer of a call that gets its connection, or is cancelled', async () => {
    const { connections, send, manual } = openQueue({ maxConnections: 1 })
    send('/a')
    send('/b')
    send('/c').cancel(new Error('gone'))
    expect(manual.delays()).toHaveLength(1)
    connections[0]!.answer()
    await turns()
    expect(manual.delays()).toEqual([])
  })

  it('T5.1 never sends a call that was cancelled while a connection was assigned to it', async () => {
    const { connections, send, paths, outcomes } = openQueue()
    send('/a')
    connections[0]!.answer()
    await turns()
    const gone = new Error('gone')
    send('/b').cancel(gone)
    await turns()
    send('/c')
    await turns()
    expect(paths()).toEqual([['/a', '/c']])
    expect(outcomes.get('/b')).toBe(gone)
  })

  it('C8.4 tells a call that no socket could be opened, and keeps no place for it', () => {
    let works = false
    const { send, paths, outcomes } = openQueue({ maxConnections: 1, canOpen: () => works })
    for (const path of ['/a', '/b']) send(path)
    for (const path of ['/a', '/b']) expect(outcomes.get(path)).toEqual(faulty('upstream_unreachable'))
    works = true
    send('/c')
    expect(paths()).toEqual([['/c']])
  })
})

describe('connections for one call each', () => {
  it('T2.8 are opened so, and those without a call are closed at once', async () => {
    const { queue, connections, send, paths, stray } = openQueue({ maxConnections: 3 })
    for (const path of ['/free', '/resting', '/busy']) send(path)
    connections[0]!.answer()
    await turns()
    connections[1]!.answer()
    queue.strayBytes()
    expect(stray()).toBe(1)
    queue.setSingleUse(true)
    expect(connections.map(({ isFree }) => isFree)).toEqual([false, false, false])
    send('/next')
    await turns()
    expect(paths()).toEqual([['/free'], ['/resting'], ['/busy'], ['/next']])
    expect(connections.map(({ singleUse }) => singleUse)).toEqual([false, false, false, true])
  })

  it('T2.8 are not used again, nor is one that was busy before', async () => {
    const { queue, connections, send, paths } = openQueue({ maxConnections: 1 })
    send('/a')
    queue.setSingleUse(true)
    send('/b')
    connections[0]!.answer()
    await turns()
    expect(paths()).toEqual([['/a'], ['/b']])
  })

  it('T2.8 are shared again when the upstream is trusted again', async () => {
    const { queue, connections, send, paths } = openQueue({ maxConnections: 1 })
    queue.setSingleUse(true)
    queue.setSingleUse(false)
    send('/a')
    connections[0]!.answer()
    await turns()
    send('/b')
    await turns()
    expect(paths()).toEqual([['/a', '/b']])
    expect(connections[0]!.singleUse).toBe(false)
  })
})

it('C8.4 a queue that is closed fails every call, and opens nothing more', async () => {
  const { queue, connections, send, outcomes } = openQueue({ maxConnections: 1 })
  send('/served')
  connections[0]!.answer()
  await turns()
  send('/assigned')
  queue.close()
  send('/late')
  await turns()
  for (const path of ['/assigned', '/late'])
    expect(outcomes.get(path)).toEqual(faulty('upstream_unreachable'))
  expect(connections).toHaveLength(1)
})
