import type { Tunnel, TunnelEnd } from '../contracts/backend.ts'
import type { Exchange } from '../contracts/exchange.ts'
import type { Principal } from '../contracts/principal.ts'
import type { Findings } from './findings.ts'
import type { Runtime } from './runtime.ts'

/** A revocation is in force in every process within 250 ms; a tunnel ends within a second of it (C4.16). */
const SWEEP_MS = 250

/** The open websocket tunnels of this process. They are counted, and each ends with the token that opened it (C4.16). */
export class OpenTunnels {
  readonly #current: () => Runtime
  readonly #watched = new Map<Tunnel, Principal>()
  #timer: NodeJS.Timeout | undefined

  /** @param current the runtime in force, since tunnels outlive the one that opened them */
  constructor(current: () => Runtime) {
    this.#current = current
  }

  /**
   * Counts a tunnel. Its end is recorded with the recorder that recorded its beginning: a later runtime may not have
   * its backend any more, and the tunnel would be counted as open for ever.
   */
  add(
    tunnel: Tunnel,
    exchange: Exchange,
    { principal, operation }: Findings,
    { clock, recorder }: Runtime,
  ): void {
    if (principal === undefined || operation === undefined) return
    const openedAt = clock.monotonic()
    const record = (end: TunnelEnd | undefined): void => {
      const ms = clock.monotonic() - openedAt
      recorder.tunnel?.({ exchange, backend: operation.backend.name, end, ms })
    }
    record(undefined)
    if (tunnel.endsWithToken) this.#watch(tunnel, principal)
    tunnel.onEnd((end) => {
      this.#watched.delete(tunnel)
      record(end)
    })
  }

  #watch(tunnel: Tunnel, principal: Principal): void {
    this.#watched.set(tunnel, principal)
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  #sweep(): void {
    const { tokens } = this.#current()
    for (const [tunnel, principal] of this.#watched) {
      if (tokens.isCurrent(principal)) continue
      this.#watched.delete(tunnel)
      tunnel.close('token')
    }
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
