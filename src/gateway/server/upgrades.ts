import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Tunnel } from '../../base/contracts/calls/backend.ts'
import type { Upgrade } from '../../base/contracts/calls/exchange.ts'
import {
  type Authorities,
  parseRequestTarget,
  type RequestTarget,
} from '../../base/http/head/request-target.ts'
import { connectionOf } from './connection.ts'

interface UpgradeParts {
  readonly authorities: Authorities
  readonly limits: { readonly target: number }
  /** Whether an upgrade at this target is to be taken; undefined takes none. */
  readonly takesWebsocket: ((target: RequestTarget) => boolean) | undefined
  readonly isDraining: () => boolean
}

/** RFC 6455 §4.2.1: 16 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/
/** Browsers say `keep-alive, Upgrade`. What names anything else would take a header of the handshake away (T2.1). */
const CONNECTION = /^(?:keep-alive, *)?upgrade(?:, *keep-alive)?$/i

/** Whether this is a complete websocket handshake. Any other upgrade is ignored (RFC 9110 §7.8). */
function isHandshake({ method, httpVersion, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    CONNECTION.test(headers.connection ?? '') &&
    KEY.test(headers['sec-websocket-key'] ?? '') &&
    headers['sec-websocket-version'] === '13' &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  )
}

/** Decides which upgrades are taken, and keeps the open tunnels, since node forgets their connections. */
export class Upgrades {
  readonly #parts: UpgradeParts
  readonly #open = new Set<Tunnel>()
  #ended = false

  constructor(parts: UpgradeParts) {
    this.#parts = parts
  }

  /** Decides by the head alone: node needs the answer at once. Ignored while another call is being answered. */
  takes(request: IncomingMessage): boolean {
    const { takesWebsocket, isDraining } = this.#parts
    if (takesWebsocket === undefined || !isHandshake(request) || isDraining()) return false
    if (connectionOf(request.socket).isBusy) return false
    const target = this.#targetOf(request.url ?? '')
    return target !== undefined && takesWebsocket(target)
  }

  #targetOf(rawTarget: string): RequestTarget | undefined {
    const { authorities, limits } = this.#parts
    try {
      return parseRequestTarget(rawTarget, authorities, limits.target)
    } catch {
      return undefined // refused by C4.1, as a plain call
    }
  }

  add(tunnel: Tunnel): void {
    this.#open.add(tunnel)
    tunnel.onEnd(() => this.#open.delete(tunnel))
    if (this.#ended) tunnel.close('shutdown')
  }

  /** Ends all tunnels; those that are opened from now on end at once. */
  end(): void {
    this.#ended = true
    for (const tunnel of this.#open) tunnel.close('shutdown')
  }
}

/** The response to a request whose connection node has let go of, for a refused upgrade. The last on its connection. */
export class UpgradeResponse extends ServerResponse {
  readonly upgrade: Upgrade

  /** @param head what came behind the request already */
  constructor(request: IncomingMessage, socket: Socket, head: Buffer) {
    super(request)
    this.upgrade = { socket, head }
    socket.on('error', () => undefined)
    this.assignSocket(socket)
    this.once('finish', () => socket.destroySoon())
  }
}
