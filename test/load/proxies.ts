/**
 * The Node proxies that Postern is measured beside, each a process of its own: `node test/load/proxies.ts NAME`, with
 * UPSTREAM (a URL) and PUBLIC_KEY (as PEM) in the environment. Prints its port.
 */
import fastifyHttpProxy from '@fastify/http-proxy'
import fastifyJwt from '@fastify/jwt'
import replyFrom from '@fastify/reply-from'
import fastify, { type FastifyInstance } from 'fastify'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

const upstream = process.env['UPSTREAM'] ?? ''

/** The least that a proxy in Node can do: node:http and an undici pool, no check of anything. */
function bare(): Promise<number> {
  const pool = new Pool(upstream, { connections: 64 })
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    pool.dispatch(
      { method: 'GET', path: request.url ?? '/', headers: { accept: request.headers.accept ?? '*/*' } },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status, headers) => {
          response.writeHead(status, {
            'content-type': String(headers['content-type']),
            'content-length': String(headers['content-length']),
          })
        },
        onResponseData: (_controller, chunk) => {
          response.write(chunk)
        },
        onResponseEnd: () => {
          response.end()
        },
        onResponseError: () => {
          response.destroy()
        },
      },
    )
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

/** As shipped: no check of anything. */
async function replyFromAlone(): Promise<number> {
  const app = fastify()
  await app.register(replyFrom, { base: upstream })
  app.get('/*', (request, reply) => reply.from(request.url))
  return listen(app)
}

/** The usual way to build an authorising proxy on Fastify: signature and expiry, with its cache on. */
async function httpProxyWithJwt(): Promise<number> {
  const app = fastify()
  await app.register(fastifyJwt, {
    secret: { public: process.env['PUBLIC_KEY'] ?? '' },
    verify: { algorithms: ['ES256'], cache: true },
  })
  await app.register(fastifyHttpProxy, {
    upstream,
    preHandler: (request, _reply, done) => {
      request.jwtVerify().then(() => done(), done)
    },
  })
  return listen(app)
}

const PROXIES: Readonly<Record<string, () => Promise<number>>> = {
  bare,
  'reply-from': replyFromAlone,
  'http-proxy-jwt': httpProxyWithJwt,
}

const port = await PROXIES[process.argv[2] ?? '']?.()
process.stdout.write(`${port}\n`)
