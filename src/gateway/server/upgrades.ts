import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Tunnel, UpgradeHead } from '../../base/contracts/calls/backend.ts'
import type { Upgrade } from '../../base/contracts/calls/exchange.ts'
import {
  type Authorities,
  parseRequestTarget,
  type RequestTarget,
} from '../../base/http/head/request-target.ts'
import { connectionOf } from './connection.ts'

/** Decides by the head alone. @param target the request's, parsed */
export type TakesUpgrade = (request: UpgradeHead, target: RequestTarget) => boolean

interface UpgradeParts {
  readonly authorities: Authorities
  readonly limits: { readonly target: number }
  /** Whether the upgrade that a request asks for is to be taken; undefined takes none. */
  readonly takesUpgrade: TakesUpgrade | undefined
  readonly isDraining: () => boolean
}

/** Whatever it asks for. A method that changes something, and a body, would come past the checks (T2.1, T2.5). */
const mayUpgrade = ({ method, httpVersion, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  httpVersion === '1.1' &&
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined

/** Decides which upgrades are taken, and keeps the open tunnels, because node forgets their connections. */
export class Upgrades {
  readonly #parts: UpgradeParts
  readonly #open = new Set<Tunnel>()
  #ended = false

  constructor(parts: UpgradeParts) {
    this.#parts = parts
  }

  /**
   * Node needs the answer at once. False means that the upgrade is ignored, and the request is served as HTTP/1.1 (RFC 9110
   * §7.8). Always false while another call of the connection is being answered.
   */
  takes(request: IncomingMessage): boolean {
    const { takesUpgrade, isDraining } = this.#parts
    if (takesUpgrade === undefined || !mayUpgrade(request) || isDraining()) return false
    if (connectionOf(request.socket).isBusy) return false
    const target = this.#targetOf(request.url ?? '')
    return target !== undefined && takesUpgrade(request, target)
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

  /** @param head the bytes that came behind the request already */
  constructor(request: IncomingMessage, socket: Socket, head: Buffer) {
    super(request)
    this.upgrade = { socket, head }
    socket.on('error', () => undefined)
    this.assignSocket(socket)
    this.once('finish', () => socket.destroySoon())
  }
}
