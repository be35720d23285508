import type { Socket } from 'node:net'
import type {
  ActionFacts,
  Backend,
  BackendAnswer,
  Call,
  PossibleAnswers,
  Tunnel,
  UpgradeOutcome,
  UpstreamTraffic,
} from '../../contracts/backend.ts'
import { AUDIT_HEADER, withoutOwnCookies } from '../../http/end-to-end-headers.ts'
import { followedBy, type HeaderText } from '../../http/header-text.ts'
import type { JsonPointer } from '../../http/json.ts'
import type { PlainXmlRules } from '../../http/plain-xml/rules.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import { WebsocketTunnel } from '../websocket/tunnel.ts'
import {
  type Handshake,
  handshakeHeaders,
  type HandshakeOutcome,
  openWebsocket,
  switchedHeaders,
} from '../websocket/upstream.ts'
import type { XmlSection } from './answer-schema.ts'
import { HttpBackend } from './http.ts'
import { urlOf } from './redirects.ts'
import { attemptOutcome, checkStatus, type StatusVerdict, upstreamFault } from './response.ts'
import type { ExchangeRules, HttpBackendRules } from './rules.ts'
import { NONE_TRIED, type UpstreamTargets } from './targets.ts'

const SWITCHING = 101
const UNAUTHORIZED = 401

export interface StreamBackendRules extends HttpBackendRules {
  /** Whether a websocket ends with the token that opened it. */
  readonly closeOnExpiry: boolean
}

/**
 * Forwards what takes long or is large (C8.1): websockets by http-proxy-3, everything else (event streams, uploads,
 * downloads) the way of the `http` backend, whose pool streams both ways in constant memory and keeps a call one call
 * whatever its framing (T2.4).
 */
export class StreamBackend implements Backend {
  readonly name: string
  readonly format: 'json' | 'xml'
  readonly payload: 'bare' | 'envelope'
  readonly xml: PlainXmlRules | undefined
  readonly data: JsonPointer | undefined
  readonly #rules: StreamBackendRules
  readonly #clock: Clock
  readonly #plain: HttpBackend
  readonly #open: Set<Tunnel>

  /** @param owner the backend that this is a view of: it closes the targets and the tunnels */
  constructor(rules: StreamBackendRules, clock: Clock, owner?: StreamBackend) {
    this.name = rules.name
    this.format = rules.format
    this.payload = rules.payload
    this.#rules = rules
    this.#clock = clock
    this.#plain = new HttpBackend(rules, clock, owner?.targets)
    this.xml = this.#plain.xml
    this.data = this.#plain.data
    this.#open = owner === undefined ? new Set() : owner.#open
  }

  get targets(): UpstreamTargets {
    return this.#plain.targets
  }

  get xmlSection(): XmlSection | undefined {
    return this.#plain.xmlSection
  }

  get rules(): ExchangeRules {
    return this.#rules
  }

  get sender(): HttpBackend {
    return this.#plain
  }

  /** As of the `http` backend. */
  withRules(rules: Partial<ExchangeRules>): StreamBackend {
    return new StreamBackend({ ...this.#rules, ...rules }, this.#clock, this)
  }

  get requestHeaders(): ReadonlySet<string> | undefined {
    return this.#rules.requestHeaders
  }

  answer(call: Call): Promise<BackendAnswer> {
    return this.#plain.answer(call)
  }

  async upgrade(call: Call, socket: Socket, head: Buffer): Promise<UpgradeOutcome> {
    const outcome = await this.#attempt(call, socket, head)
    if (outcome.kind === 'open') return outcome
    const verdict = this.#verdictOn(call, outcome.statusCode)
    return { kind: 'refused', answer: await this.#plain.refuse(verdict, outcome) }
  }

  /** Asks one target, and tells it what came of that. A handshake is not repeated: its client waits, and asks again. */
  async #attempt(call: Call, socket: Socket, head: Buffer): Promise<HandshakeOutcome> {
    const [headers, authorized] = await Promise.all([
      this.#plain.headersOf(call),
      this.#plain.authorize(call),
    ])
    const given = authorized === undefined ? headers : followedBy(headers, authorized.line)
    const target = this.#plain.targets.choose(NONE_TRIED)
    const settle = target.enter()
    try {
      const handshake = this.#handshake(call, given, socket, target.address)
      const rules = { ...this.#rules, target: target.address }
      const outcome = await openWebsocket(handshake, socket, head, rules)
      settle('good')
      if (outcome.kind === 'answer')
        call.record?.upstreamAnswered(outcome.statusCode, outcome.headers[AUDIT_HEADER])
      if (outcome.kind === 'answer' && outcome.statusCode === UNAUTHORIZED)
        authorized?.credentials.refused(authorized.line)
      return outcome
    } catch (error) {
      settle(attemptOutcome(error))
      throw upstreamFault(error)
    }
  }

  #handshake(call: Call, given: HeaderText, socket: Socket, address: UpstreamAddress): Handshake {
    const path = this.#plain.pathOf(call)
    const url = urlOf({ address }, path)
    return {
      path: address.basePath + path,
      headers: handshakeHeaders(given, this.#rules.host ?? address.host),
      switched: (headers) => {
        call.record?.upstreamAnswered(SWITCHING, headers[AUDIT_HEADER])
        const passed = this.#plain.passedHeaders(call, headers, { url })
        return switchedHeaders(call, headers, withoutOwnCookies(passed, call.cookieDropped))
      },
      opened: (upstream) => this.#tunnel(socket, upstream),
    }
  }

  #tunnel(socket: Socket, upstream: Socket): Tunnel {
    const { closeOnExpiry, timeouts } = this.#rules
    const tunnel = new WebsocketTunnel(socket, upstream, {
      endsWithToken: closeOnExpiry,
      idle: timeouts.idle,
    })
    this.#open.add(tunnel)
    tunnel.onEnd(() => this.#open.delete(tunnel))
    return tunnel
  }

  /** As of any call (C8.4), but that a success is none: it would be the answer to another question. */
  #verdictOn({ authorization }: Call, status: number): StatusVerdict {
    const authorizationForwarded = this.#rules.forwardAuthorization && authorization !== undefined
    const verdict = checkStatus(status, { conditional: false, ranged: false, authorizationForwarded })
    if (verdict.kind !== 'answer') return verdict
    throw new Fault('upstream_broken', { detail: `the upstream answered a handshake with ${status}` })
  }

  possibleAnswers(action: ActionFacts, method: string): PossibleAnswers {
    return this.#plain.possibleAnswers(action, method)
  }

  healthy(): boolean {
    return this.#plain.healthy()
  }

  /** A websocket's connection is one that is in use. */
  traffic(): UpstreamTraffic {
    const traffic = this.#plain.traffic()
    return { ...traffic, active: traffic.active + this.#open.size }
  }

  async close(): Promise<void> {
    for (const tunnel of this.#open) tunnel.close('shutdown')
    await this.#plain.close()
  }
}
