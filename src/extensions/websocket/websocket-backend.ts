import type { Socket } from 'node:net'
import type {
  BackendUpgrade,
  Call,
  Tunnel,
  UpgradeOutcome,
  UpstreamTraffic,
} from '../../base/contracts/calls/backend.ts'
import { AUDIT_HEADER, withoutOwnCookies } from '../../base/http/head/end-to-end-headers.ts'
import { followedBy, type HeaderText } from '../../base/http/head/header-text.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { HttpBackend } from '../../gateway/backends/forward/http.ts'
import { urlOf } from '../../gateway/backends/forward/target/redirects.ts'
import {
  checkStatus,
  type StatusVerdict,
  upstreamFault,
} from '../../gateway/backends/forward/response/response.ts'
import type { ExchangeRules, HttpBackendRules } from '../../gateway/backends/forward/rules.ts'
import { attemptOutcome, NONE_TRIED } from '../../gateway/backends/forward/target/targets.ts'
import type { CallTargets } from '../../gateway/backends/forward/target/varying-targets.ts'
import type { UpstreamAddress } from '../../gateway/upstream/socket.ts'
import { handshakeHeaders, isHandshake, switchedHeaders } from './handshake.ts'
import { WebsocketTunnel } from './tunnel.ts'
import { type Handshake, type HandshakeOutcome, openWebsocket } from './upstream.ts'

const SWITCHING = 101
const UNAUTHORIZED = 401

/**
 * A backend of kind `stream` that takes websockets over, by http-proxy-3. All other calls go the way of the `http` backend (C8.1),
 * whose pool streams both ways in constant memory and keeps a call one call for any framing (T2.4).
 */
export class WebsocketBackend extends HttpBackend {
  readonly #clock: Clock
  readonly #closeOnExpiry: boolean
  readonly #tunnels: Set<Tunnel>

  /**
   * @param closeOnExpiry whether a websocket ends with the token that opened it
   * @param owner the backend that this is a view of: it closes the targets and the tunnels
   */
  constructor(
    rules: HttpBackendRules,
    closeOnExpiry: boolean,
    clock: Clock,
    owner?: WebsocketBackend,
    at?: CallTargets,
  ) {
    super(rules, clock, owner, at)
    this.#clock = clock
    this.#closeOnExpiry = closeOnExpiry
    this.#tunnels = owner === undefined ? new Set() : owner.#tunnels
  }

  override withRules(rules: Partial<ExchangeRules>): WebsocketBackend {
    return new WebsocketBackend({ ...this.rules, ...rules }, this.#closeOnExpiry, this.#clock, this)
  }

  protected override viewAt(rules: HttpBackendRules, targets: CallTargets): WebsocketBackend {
    return new WebsocketBackend(rules, this.#closeOnExpiry, this.#clock, this, targets)
  }

  readonly upgrade: BackendUpgrade = {
    isAsked: isHandshake,
    take: (call, socket, head) => this.#take(call, socket, head),
  }

  async #take(call: Call, socket: Socket, head: Buffer): Promise<UpgradeOutcome> {
    const own = this.at(call)
    const outcome = await own.#attempt(call, socket, head)
    if (outcome.kind === 'open') return outcome
    const verdict = own.#verdictOn(call, outcome.statusCode)
    return { kind: 'refused', answer: await own.refuse(verdict, outcome) }
  }

  /** Asks one target, and reports the outcome to it. A handshake is not repeated: its client waits, and asks again. */
  async #attempt(call: Call, socket: Socket, head: Buffer): Promise<HandshakeOutcome> {
    const [headers, authorized] = await Promise.all([this.headersOf(call), this.authorize(call)])
    const given = authorized === undefined ? headers : followedBy(headers, authorized.line)
    const target = this.targets.choose(NONE_TRIED)
    const settle = target.enter()
    try {
      const handshake = this.#handshake(call, given, socket, target.address)
      const rules = { ...this.rules, target: target.address }
      const outcome = await openWebsocket(handshake, socket, head, rules)
      settle('good')
      if (outcome.kind === 'answer')
        call.record?.upstreamAnswered(outcome.statusCode, outcome.headers[AUDIT_HEADER])
      if (outcome.kind === 'answer' && outcome.statusCode === UNAUTHORIZED)
        authorized?.credentials.refused(authorized.line)
      return outcome
    } catch (error) {
      settle(attemptOutcome(error))
      throw upstreamFault(error, this.conceals)
    }
  }

  #handshake(call: Call, given: HeaderText, socket: Socket, address: UpstreamAddress): Handshake {
    const path = this.pathOf(call)
    const url = urlOf({ address }, path)
    return {
      path: address.basePath + path,
      headers: handshakeHeaders(given, this.rules.host ?? address.host),
      switched: (headers) => {
        call.record?.upstreamAnswered(SWITCHING, headers[AUDIT_HEADER])
        const passed = this.passedHeaders(call, headers, { url })
        return switchedHeaders(call, headers, withoutOwnCookies(passed, call.cookieDropped))
      },
      opened: (upstream) => this.#tunnel(socket, upstream),
    }
  }

  #tunnel(socket: Socket, upstream: Socket): Tunnel {
    const tunnel = new WebsocketTunnel(socket, upstream, {
      endsWithToken: this.#closeOnExpiry,
      idle: this.rules.timeouts.idle,
    })
    this.#tunnels.add(tunnel)
    tunnel.onEnd(() => this.#tunnels.delete(tunnel))
    return tunnel
  }

  /** As for any call (C8.4), but a success is a fault: it would be the answer to another question. */
  #verdictOn({ authorization }: Call, status: number): StatusVerdict {
    const authorizationForwarded = this.rules.forwardAuthorization && authorization !== undefined
    const verdict = checkStatus(status, { conditional: false, ranged: false, authorizationForwarded })
    if (verdict.kind !== 'answer') return verdict
    throw new Fault('upstream_broken', { detail: `the upstream answered a handshake with ${status}` })
  }

  /** A websocket's connection is one that is in use. */
  override traffic(): UpstreamTraffic {
    const traffic = super.traffic()
    return { ...traffic, active: traffic.active + this.#tunnels.size }
  }

  override async close(): Promise<void> {
    for (const tunnel of this.#tunnels) tunnel.close('shutdown')
    await super.close()
  }
}
