import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { expect, it } from 'vitest'
import { OpenConnections } from '../../../src/gateway/server/close-listener.ts'

class Peer extends EventEmitter {
  destroyed = false
  readonly remoteAddress: string | undefined
  readonly remotePort: number | undefined

  constructor(remotePort: number | undefined) {
    super()
    this.remoteAddress = remotePort === undefined ? undefined : '192.0.2.1'
    this.remotePort = remotePort
  }

  destroy(): void {
    this.destroyed = true
  }
}

const follow = (secure: boolean): { server: EventEmitter; open: OpenConnections } => {
  const server = new EventEmitter()
  return { server, open: new OpenConnections(server as unknown as Server, secure) }
}

it('T5.10 cuts what is read from a TLS connection, and lets go of it when the connection is closed', () => {
  const { server, open } = follow(true)
  const [raw, secure] = [new Peer(1), new Peer(1)]
  server.emit('connection', raw)
  server.emit('secureConnection', secure)
  open.destroy()
  expect([raw.destroyed, secure.destroyed]).toEqual([false, true])
  secure.destroyed = false
  raw.emit('close')
  open.destroy()
  expect(secure.destroyed).toBe(false)
})

it('T5.1 keeps no TLS connection whose client has reset it before its handshake was read', () => {
  const { server, open } = follow(true)
  const [raw, secure] = [new Peer(1), new Peer(undefined)]
  server.emit('connection', raw)
  // Its address is gone with it: the system does not know the peer of a connection that was reset.
  server.emit('secureConnection', secure)
  raw.emit('close')
  open.destroy()
  expect([raw.destroyed, secure.destroyed]).toEqual([false, false])
})
