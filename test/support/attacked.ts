import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { MemoryBackend } from '../../src/gateway/backends/memory/memory.ts'
import type { Call } from '../../src/base/contracts/calls/backend.ts'
import { exchangeRaw, openRaw, type RawResponse } from './raw-http.ts'
import { startPostern, type StartedPostern, type StartOptions } from './start-postern.ts'
import { openUpstream, type ReceivedRequest, type Upstream } from './start-upstream.ts'
import { ALL_AT_ACME, issueToken } from './tokens.ts'
import type { WitnessedCall, WitnessOptions } from './witness-module.ts'
import { moduleAt, withBackends } from './over-module.ts'

/** A Postern under attack, and the witness behind it who tells what got through. */
export interface Attacked {
  readonly gateway: StartedPostern
  readonly port: number
  /** The header lines of a client that may do everything at ACME, and nothing at GLOBEX. */
  readonly authorization: string
  /** `METHOD target` of everything that got through since `forget`, as the backend was given it. */
  readonly reached: () => readonly string[]
  readonly forget: () => void
  close(): Promise<void>
}

export interface AttackedUpstream extends Attacked {
  readonly upstream: Upstream
  /** What the upstream received since `forget`. */
  readonly received: () => readonly ReceivedRequest[]
}

export interface AttackedMemory extends Attacked {
  /** The calls that the memory backend was given since `forget`. */
  readonly calls: () => readonly Call[]
}

export interface AttackedModule extends Attacked {
  /** The calls that the module was given since `forget`. */
  readonly received: () => readonly WitnessedCall[]
}

const anybody = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
const withBody = { ...anybody, body: { required: false } }
const opaque = { ...anybody, consumes: ['application/octet-stream'] }

const perMethod = <Rule>(rule: Rule) => ({
  GET: rule,
  POST: rule,
  PUT: rule,
  PATCH: rule,
  DELETE: rule,
  OPTIONS: rule,
})

/**
 * Actions that the demo has no need of, but an attacker has: `fund-data/echo/{one}`, whose parameter takes any text;
 * `fund-data/any/{one}`, which offers every method, with or without a parsed body where that means anything; `fund-data/raw/{one}`, which
 * streams any body through.
 */
const withOpenActions = (configuration: Configuration): Configuration => {
  const action = { level: 'business', area: 'fund-data' } as const
  const open = [
    { ...action, action: 'echo/{one}', methods: { GET: anybody } },
    { ...action, action: 'any/{one}', methods: { ...perMethod(withBody), GET: anybody } },
    { ...action, action: 'raw/{one}', methods: { ...perMethod(opaque), GET: anybody } },
  ]
  return { ...configuration, actions: [...configuration.actions, ...open] }
}

/** Without a store and a trail in files, if not told otherwise: attacks look at neither. */
const start = (options: StartOptions): Promise<StartedPostern> =>
  startPostern({
    keeps: 'nothing',
    ...options,
    change: (loaded) => withOpenActions(options.change?.(loaded) ?? loaded),
  })

const authorizationOf = async (gateway: StartedPostern): Promise<string> =>
  `Authorization: Bearer ${(await issueToken(gateway, { scope: ALL_AT_ACME })).access_token}\r\n`

/** In front of an upstream on a socket, which records the bytes that it gets. */
export async function attackUpstream(options: StartOptions = {}): Promise<AttackedUpstream> {
  const upstream = await openUpstream()
  const environment = { UPSTREAM_URL: upstream.url, ...options.environment }
  const gateway = await start({ config: 'upstream.yaml', ...options, environment })
  return {
    gateway,
    upstream,
    port: gateway.port,
    authorization: await authorizationOf(gateway),
    received: () => upstream.requests,
    reached: () => upstream.requests.map(({ method, target }) => `${method} ${target}`),
    forget: () => void upstream.requests.splice(0),
    close: async () => {
      await gateway.close()
      await upstream.close()
    },
  }
}

/** In front of the memory backend, whose every call is recorded. One at a time in a file. */
export async function attackMemory(options: StartOptions = {}): Promise<AttackedMemory> {
  const answer = vi.spyOn(MemoryBackend.prototype, 'answer')
  const gateway = await start(options)
  const calls = (): Call[] => answer.mock.calls.map(([call]) => call)
  return {
    gateway,
    port: gateway.port,
    authorization: await authorizationOf(gateway),
    calls,
    reached: () => calls().map(({ method, target }) => `${method} ${target.path}${target.query}`),
    forget: () => void answer.mockClear(),
    close: async () => {
      await gateway.close()
      answer.mockRestore()
    },
  }
}

const WITNESS = fileURLToPath(new URL('witness-module.ts', import.meta.url))

/** In front of a module, whose every call is recorded as it sees it. */
export async function attackModule(): Promise<AttackedModule> {
  const options: WitnessOptions = { channel: `witness-${randomUUID()}` }
  const calls: WitnessedCall[] = []
  const record = (call: unknown): void => void calls.push(call as WitnessedCall)
  subscribe(options.channel, record)
  const gateway = await start({
    config: 'examples/sqlite.yaml',
    change: (loaded) => {
      return withBackends(loaded, { funds: { ...moduleAt(loaded, 'funds'), file: WITNESS, options } })
    },
  })
  return {
    gateway,
    port: gateway.port,
    authorization: await authorizationOf(gateway),
    received: () => calls,
    reached: () => calls.map(({ method, target }) => `${method} ${target}`),
    forget: () => void calls.splice(0),
    close: async () => {
      await gateway.close()
      unsubscribe(options.channel, record)
    },
  }
}

export interface RawRequest {
  readonly method?: string
  readonly target: string
  /** Header lines, each with its CRLF; Host comes first of itself. */
  readonly lines?: string
  readonly body?: string | Buffer
}

/** The bytes of a request, nothing of it encoded or checked. Latin-1, one byte per character. */
export const bytesOf = ({ method = 'GET', target, lines = '', body = '' }: RawRequest): Buffer =>
  Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines}\r\n`, 'latin1'),
    typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
  ])

/** Sends requests over connections that are kept where Postern keeps them. */
export class RawCaller {
  readonly #port: number
  #connection: ReturnType<typeof openRaw> | undefined

  constructor(port: number) {
    this.#port = port
  }

  async call(bytes: Buffer, how: { readonly head?: boolean } = {}): Promise<RawResponse> {
    const connection = await (this.#connection ??= openRaw(this.#port))
    connection.send(bytes)
    const response = await connection.response(how)
    if (response.headers['connection'] === 'close') this.close()
    return response
  }

  close(): void {
    void this.#connection?.then((connection) => connection.destroy())
    this.#connection = undefined
  }
}

/** Status codes of everything that is answered until the connection closes. */
export const statusesOf = async (port: number, bytes: Buffer): Promise<number[]> => {
  const text = await exchangeRaw(port, bytes)
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

/** The service's own end of the next connection: it serves in this process. */
export const serverSocket = (port: number): Promise<Socket> =>
  new Promise((resolve) => {
    const take = (message: unknown): void => {
      const { socket } = message as { readonly socket: Socket }
      if (socket.localPort !== port) return
      unsubscribe('net.server.socket', take)
      resolve(socket)
    }
    subscribe('net.server.socket', take)
  })
