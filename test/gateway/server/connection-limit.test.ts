import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { descriptorsOf } from '../../../src/base/files/descriptors.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { ConnectionLimit } from '../../../src/gateway/server/connection-limit.ts'
import { certificateFolder, makeCertificate } from '../../support/certificates.ts'
import { echoDoor, startListener } from '../../support/listener.ts'

function limitOf(descriptors: number) {
  const notes: unknown[] = []
  let refused = 0
  const limit = new ConnectionLimit({
    own: descriptorsOf(descriptors),
    refused: () => void (refused += 1),
    note: (_level, event, facts) => void notes.push([event, facts]),
  })
  return { limit, notes, refused: () => refused }
}

describe('a listener at its limit of connections', () => {
  it.each(['http', 'https'])(
    'C11.1.1 closes a connection before it reads a byte, and serves those that are open (%s)',
    async (scheme) => {
      const files = makeCertificate(certificateFolder(), 'own')
      const { limit, refused } = limitOf(400)
      const overrides =
        scheme === 'https' ? { tls: files, connectionLimit: limit } : { connectionLimit: limit }
      const { port, seen } = await startListener(echoDoor, overrides)
      const open = (): Socket =>
        scheme === 'https'
          ? connectTls({ port, host: '127.0.0.1', ca: readFileSync(files.certificate) })
          : connect(port, '127.0.0.1')
      const kept = open()
      onTestFinished(() => void kept.destroy())
      await once(kept, scheme === 'https' ? 'secureConnect' : 'connect')
      kept.write('GET /api/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
      await once(kept, 'data')
      vi.spyOn(limit, 'takes').mockImplementation(() => false)
      const further = open().on('error', () => undefined)
      further.write('GET /api/2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
      await new Promise((resolve) => further.once('close', resolve))
      kept.write('GET /api/3 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
      await once(kept, 'data')
      expect(seen.map(({ target }) => (target instanceof Fault ? undefined : target.path))).toEqual([
        '/api/1',
        '/api/3',
      ])
      expect(refused()).toBe(0)
    },
  )
})

describe('the limit of connections', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('C11.1.1 takes half of what is left of the limit, when the kept ones and those in use are taken off', () => {
    const { limit } = limitOf(1024)
    limit.measure(68)
    expect([limit.takes(100, 350), limit.takes(100, 351)]).toEqual([true, false])
  })

  it('C11.1.1 takes none whose descriptor is one of those that are kept: 256, or a quarter of a low limit', () => {
    const [usual, low] = [limitOf(20_000).limit, limitOf(400).limit]
    expect([usual.takes(19_743), usual.takes(19_744)]).toEqual([true, false])
    expect([low.takes(299), low.takes(300)]).toEqual([true, false])
  })

  it('C11.1.1 takes all where the system tells no limit', () => {
    const { limit, refused } = limitOf(Number.POSITIVE_INFINITY)
    limit.measure(1000)
    expect(limit.takes(1_000_000, 1_000_000)).toBe(true)
    expect(refused()).toBe(0)
  })

  it('T5.22 C11.1.1 tells once that connections are refused, and once, after ten seconds without, that they are taken again', () => {
    const { limit, notes, refused } = limitOf(400)
    for (let at = 0; at < 3; at += 1) limit.takes(300)
    vi.advanceTimersByTime(9000)
    limit.takes(300)
    expect(limit.condition().degraded).toMatchObject([{ name: 'connections' }])
    vi.advanceTimersByTime(9999)
    expect(notes).toEqual([['connections_refused', { limit: 400, kept: 100 }]])
    vi.advanceTimersByTime(1)
    expect(limit.condition().degraded).toEqual([])
    expect(notes.slice(1)).toEqual([['connections_taken_again', { refused: 4 }]])
    expect(refused()).toBe(4)
  })
})
