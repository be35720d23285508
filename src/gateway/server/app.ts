import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { EarlyAdmission } from '../../base/contracts/calls/admission.ts'
import type { Answer, Door } from '../../base/contracts/calls/exchange.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { RequestTarget } from '../../base/http/head/request-target.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { carryByReplyFrom, ReplyCarrier } from './carrier.ts'
import { connectionOf, type Wire } from './connection.ts'
import { IncomingExchange, type ReadingRules } from './exchange.ts'
import {
  answerConnect,
  answerUnreadable,
  type RenderFault,
  undecided,
  type UnreadableParts,
} from './unreadable.ts'
import { DESCRIPTION_PATH } from './schema.ts'
import { UpgradeResponse, type Upgrades } from './upgrades.ts'
import { writeAnswer } from './write-answer.ts'

/** What requests need to be served. Made after the port is known. */
export interface ListenerParts {
  readonly entrance: Entrance
  readonly upgrades: Upgrades
  readonly unreadable: UnreadableParts
}

/** Holds what arrives after the port is bound and before the listener is opened. */
export class PendingRequests {
  #parts: ListenerParts | undefined
  #pending: ((parts: ListenerParts) => void)[] = []

  serve(run: (parts: ListenerParts) => void): void {
    if (this.#parts === undefined) this.#pending.push(run)
    else run(this.#parts)
  }

  /** Node wants to know at once. Before the listener is open it is not known: then no upgrade is taken. */
  takesUpgrade(request: IncomingMessage): boolean {
    return this.#parts?.upgrades.takes(request) ?? false
  }

  open(parts: ListenerParts): void {
    this.#parts = parts
    const pending = this.#pending
    this.#pending = []
    for (const run of pending) run(parts)
  }
}

/**
 * Fastify on a server of ours. Every request goes through it, and by one hook to the entrance: one set of rules checks
 * them all (C3, C4), and all are answered in one form (C2.3). These parts of Fastify and of node are switched off or
 * replaced, for these reasons:
 *
 * - the router decides nothing. It knows one path; what it cannot parse (`frameworkErrors`) or find goes the same way,
 *   and the exchange is made of the raw request;
 * - parsers of queries and bodies, and validation, see nothing: the hook never calls `done`;
 * - its compilers of schemas (`compilersFactory`): Ajv and fast-json-stringify would be loaded for nothing;
 * - its 503 while closing (`return503OnClosing`) and its answer to unreadable bytes (`clientErrorHandler`);
 * - its answer to errors, which repeats their message (`endUnanswered`);
 * - node's bare answers to Expect (`checkContinue`, `checkExpectation`) and CONNECT (`connect`);
 * - node's silent cut of header lines beyond 2000 (`maxHeadersCount`): a repeated Authorization could hide there.
 */
export function makeApp(server: Server, pending: PendingRequests): FastifyInstance {
  const enter = (request: FastifyRequest, reply: FastifyReply): void => {
    try {
      pending.serve(({ entrance }) =>
        entrance.receive({ request: request.raw, response: reply.raw, carrier: new ReplyCarrier(reply) }),
      )
    } catch (error) {
      endUnanswered(reply, error)
    }
  }
  server.maxHeadersCount = 0
  const app = fastify({
    logger: false,
    genReqId: () => '',
    exposeHeadRoutes: false,
    forceCloseConnections: false,
    return503OnClosing: false,
    routerOptions: { querystringParser: () => NO_QUERY },
    schemaController: { compilersFactory: { buildValidator: unreached, buildSerializer: unreached } },
    frameworkErrors: (_error, request, reply) => enter(request, reply),
    clientErrorHandler: (error, socket) =>
      pending.serve(({ unreadable }) => answerUnreadable(error, socket, unreadable)),
    serverFactory: (handler) => {
      listen(server, handler, pending)
      return server
    },
  })
  carryByReplyFrom(app)
  app.addHook('onRequest', enter)
  app.route({ method: app.supportedMethods, url: '/*', handler: unreached })
  app.setNotFoundHandler(unreached)
  return app
}

/**
 * For a defect of the entrance itself, which can render no answer. Fastify would answer with the error's message (C2.3):
 * instead the connection is cut, and the error ends the process as one that nobody catches.
 */
function endUnanswered(reply: FastifyReply, error: unknown): void {
  reply.hijack()
  reply.raw.destroy()
  queueMicrotask(() => {
    throw error
  })
}

const NO_QUERY = {}

/** The hook answers, whatever the route. */
const unreached = (): never => {
  throw new TypeError('a request went past the entrance')
}

function listen(server: Server, handler: RequestListener, pending: PendingRequests): void {
  server.on('request', handler)
  server.on('checkContinue', handler)
  server.on('checkExpectation', handler)
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) =>
    handler(request, new UpgradeResponse(request, socket, head)),
  )
  server.on('connect', (request: IncomingMessage) =>
    pending.serve(({ unreadable }) => answerConnect(request, unreadable)),
  )
}

interface EntranceParts {
  readonly rules: ReadingRules
  readonly route: (target: RequestTarget | Fault) => Door
  readonly renderFault: RenderFault
  readonly recorder: Recorder
  readonly clock: Clock
  /** Absent: every request reaches its door. */
  readonly earlyAdmission: EarlyAdmission | undefined
  /** Keeps the open tunnels. */
  readonly upgrades: Upgrades
  /** How long a client has to read each piece of its answer, in milliseconds. */
  readonly patience: number
  /** Whether the answer shall close its connection. Asked once per answer. */
  readonly isDraining: () => boolean
}

/** Receives a request, has it answered by the door that its path names, and sends the answer. */
export class Entrance {
  readonly #parts: EntranceParts

  constructor(parts: EntranceParts) {
    this.#parts = parts
  }

  receive(wire: Wire): void {
    const connection = connectionOf(wire.request.socket)
    connection.enter(new IncomingExchange(wire, connection, this.#parts.rules), this.#serve)
  }

  readonly #serve = (exchange: IncomingExchange): void => {
    try {
      exchange.refusal = this.#parts.earlyAdmission?.refuse(exchange.clientAddress)
      const answer = this.#parts.route(exchange.target)(exchange)
      if (answer instanceof Promise) void this.#sendWhenSettled(exchange, answer)
      else this.#send(exchange, answer)
    } catch (thrown) {
      this.#fail(exchange, thrown)
    }
  }

  async #sendWhenSettled(exchange: IncomingExchange, answer: Promise<Answer>): Promise<void> {
    try {
      this.#send(exchange, await answer)
    } catch (thrown) {
      this.#fail(exchange, thrown)
    }
  }

  #send(exchange: IncomingExchange, answer: Answer): void {
    if (answer.tunnel === undefined)
      writeAnswer(exchange, answer, this.#parts.isDraining(), this.#parts.patience)
    else this.#parts.upgrades.add(answer.tunnel)
  }

  /** Doors render their own faults. A door that throws, or whose answer cannot be sent, has a defect (C2.3). */
  #fail(exchange: IncomingExchange, cause: unknown): void {
    const fault = new Fault('internal', { cause, detail: 'a door failed' })
    const { response } = exchange.wire
    const { clock, recorder } = this.#parts
    recorder.decision(undecided(exchange, fault, clock.monotonic() - exchange.startedAt))
    if (response.headersSent) response.destroy()
    else this.#send(exchange, this.#parts.renderFault(fault, exchange.head.headers.accept))
  }
}

export interface Doors {
  /** `/api`; in a sidecar every other path too, which it answers in an envelope (C2.3). */
  readonly api: Door
  /** `/.well-known/openapi.json` (C11.3.8). */
  readonly description: Door
  /** Every other path. Absent in a sidecar (C11.2). */
  readonly identity: Door | undefined
}

const API = 'api'

/** Chooses the door by the path alone, never by Host (contract, preface). */
export function compileRouting(doors: Doors): (target: RequestTarget | Fault) => Door {
  const { api, description, identity = api } = doors
  return (target) => {
    if (target instanceof Fault || target.segments[0] === API) return api
    return target.path === DESCRIPTION_PATH ? description : identity
  }
}
