/**
 * The Node proxies that Postern is measured beside. Each is a process of its own: `node test/long/load/proxies.ts NAME` with
 * UPSTREAM (a URL), PUBLIC_KEY (PEM, for ES256; for `bare-jose` also RS256) and PORT (any, if absent) in the environment; it prints its port. Each is as lean as a gateway
 * can honestly be: it forwards nothing without a token that it has verified, it keeps the timeouts of its packages, and it
 * loads no other one's packages: its start and its memory are compared too.
 */
import type { FastifyInstance } from 'fastify'
import { createPublicKey, verify } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, type Dispatcher } from 'undici'

const upstream = process.env['UPSTREAM'] ?? ''
const publicKey = process.env['PUBLIC_KEY'] ?? ''
const listenPort = Number(process.env['PORT'] ?? 0)

/** The least that a gateway has to check: the signature once per token, the expiry in each call. */
class VerifiedTokens {
  /** By the value of Authorization: when the token expires, in milliseconds since 1970. */
  readonly #expiries = new Map<string, number>()
  readonly #key = createPublicKey(publicKey)

  accepts(authorization = ''): boolean {
    const expiry = this.#expiries.get(authorization)
    return expiry === undefined ? this.#verify(authorization) : expiry > Date.now()
  }

  #verify(authorization: string): boolean {
    const [, signed = '', claims = '', signature = ''] =
      /^Bearer ([\w-]+\.([\w-]+))\.([\w-]+)$/.exec(authorization) ?? []
    const key = { key: this.#key, dsaEncoding: 'ieee-p1363' as const }
    if (!verify('sha256', Buffer.from(signed), key, Buffer.from(signature, 'base64url'))) return false
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number }
    this.#expiries.set(authorization, exp * 1000)
    return exp * 1000 > Date.now()
  }
}

/** Passes status, type, length and body on. Head and body are one write where the body came in one piece. */
class PassingAnswer implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  readonly #done: () => void
  #status = 0
  #headers: string[] = []
  #length = -1

  constructor(response: ServerResponse, done: () => void) {
    this.#response = response
    this.#done = done
  }

  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number, headers: Record<string, string | string[]>): void {
    this.#status = status
    this.#headers = ['Content-Type', String(headers['content-type'])]
    const length = headers['content-length']
    if (typeof length !== 'string') return
    this.#headers.push('Content-Length', length)
    this.#length = Number(length)
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    const response = this.#response
    if (!response.headersSent) response.writeHead(this.#status, this.#headers)
    // Node writes head and body at once if both are text. Latin-1 has one character for each byte.
    if (chunk.length === this.#length) response.end(chunk.toString('latin1'), 'latin1')
    else response.write(chunk)
  }

  onResponseEnd(): void {
    const response = this.#response
    if (!response.headersSent) response.writeHead(this.#status, this.#headers)
    if (!response.writableEnded) response.end()
    this.#done()
  }

  onResponseError(): void {
    this.#response.destroy()
    this.#done()
  }
}

/**
 * The least that a gateway in Node can do. undici's `dispatch` makes no stream and no promise of an answer. A `Client`
 * is one connection, and a list of free ones costs less than a `Pool`; there are as many as calls at a time. Headers
 * are lists, which node writes as they are. `optimizeEmptyRequests` saves the events of a body that is not there.
 */
function bare(): Promise<number> {
  const tokens = new VerifiedTokens()
  return forwarding((authorization) => tokens.accepts(authorization))
}

/** The same, verifying by jose, as its documentation says: for what a token costs that was never seen before. */
async function bareWithJose(): Promise<number> {
  const { jwtVerify } = await import('jose')
  const key = createPublicKey(publicKey)
  const expiries = new Map<string, number>()
  return forwarding((authorization = '') => {
    const expiry = expiries.get(authorization)
    if (expiry !== undefined) return expiry > Date.now()
    return jwtVerify(authorization.slice('Bearer '.length), key, { algorithms: ['ES256', 'RS256'] }).then(
      ({ payload: { exp = 0 } }) => {
        expiries.set(authorization, exp * 1000)
        return true
      },
      () => false,
    )
  })
}

function forwarding(
  accepts: (authorization: string | undefined) => boolean | Promise<boolean>,
): Promise<number> {
  const free: Client[] = []
  const server = createServer({ optimizeEmptyRequests: true }, (request, response) => {
    const accepted = accepts(request.headers.authorization)
    if (accepted instanceof Promise) void accepted.then((result) => answer(request, response, result))
    else answer(request, response, accepted)
  })
  const answer = (request: IncomingMessage, response: ServerResponse, accepted: boolean): void => {
    if (!accepted) {
      response.writeHead(401).end()
      return
    }
    const { accept = '*/*' } = request.headers
    const client = free.pop() ?? new Client(upstream, { pipelining: 1 })
    const passing = new PassingAnswer(response, () => free.push(client))
    client.dispatch({ method: 'GET', path: request.url ?? '/', headers: ['accept', accept] }, passing)
  }
  return new Promise((resolve) => {
    server.listen(listenPort, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: listenPort })
  return (app.server.address() as AddressInfo).port
}

/** As shipped, with the check in a hook that makes no promise. Fastify's log is off, as it is by default. */
async function replyFromWithCheck(): Promise<number> {
  const [{ fastify }, { default: replyFrom }] = await Promise.all([
    import('fastify'),
    import('@fastify/reply-from'),
  ])
  const tokens = new VerifiedTokens()
  const app = fastify()
  app.addHook('onRequest', (request, reply, done) => {
    if (tokens.accepts(request.headers.authorization)) done()
    else void reply.code(401).send()
  })
  await app.register(replyFrom, { base: upstream })
  app.get('/*', (request, reply) => reply.from(request.url))
  return listen(app)
}

/**
 * The usual way to build an authorising proxy on fastify. Its cache of verified tokens is on, and its key is the token
 * itself, which is unique: the default would hash the token in each call. Called without options `jwtVerify` uses the
 * one verifier that has the cache; called with a callback it would make a new one, with an empty cache, for each call.
 */
async function httpProxyWithJwt(): Promise<number> {
  const [{ fastify }, { default: fastifyHttpProxy }, { default: fastifyJwt }] = await Promise.all([
    import('fastify'),
    import('@fastify/http-proxy'),
    import('@fastify/jwt'),
  ])
  const app = fastify()
  await app.register(fastifyJwt, {
    secret: { public: publicKey },
    verify: { algorithms: ['ES256'], cache: true, cacheKeyBuilder: (token: string) => token },
  })
  await app.register(fastifyHttpProxy, {
    upstream,
    disableRequestLogging: true,
    preHandler: (request, _reply, done) => {
      request.jwtVerify().then(() => done(), done)
    },
  })
  return listen(app)
}

const PROXIES: Readonly<Record<string, () => Promise<number>>> = {
  bare,
  'bare-jose': bareWithJose,
  'reply-from': replyFromWithCheck,
  'http-proxy-jwt': httpProxyWithJwt,
}

const port = await PROXIES[process.argv[2] ?? '']?.()
process.stdout.write(`${port}\n`)
