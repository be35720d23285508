/**
 * Fastify, as the admin listener uses it. Requests are checked by their operation (perform.ts), not by Fastify's Ajv. Trap: Fastify's default errors repeat the path and the exception's message, so its handlers are replaced.
 */
import fastify, {
  type FastifyBodyParser,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Recorder } from '../contracts/recorder.ts'
import { parseJson } from '../http/json.ts'
import { Fault } from '../kernel/faults.ts'
import { AdminError, errorBodyOf, type FrameworkError } from './errors.ts'
import { MERGE_PATCH } from './operation.ts'

/** The listener's application and its requests: no other file names the library. */
export type AdminApp = FastifyInstance
export type IncomingRequest = FastifyRequest

/** Replaces Fastify's schema compilers (Ajv, fast-json-stringify), so that they are not loaded: none of them is used. */
const unused = (): never => {
  throw new TypeError('the admin listener has a validator of its own, and no schema of an answer')
}

/**
 * Reads bodies as strictly as those under `/api` (C7.6): a key that stands twice, half a character or thousands of levels
 * are 400. Fastify's own reader makes the value then, and refuses a member `__proto__`.
 */
function bodyReader(app: AdminApp): FastifyBodyParser<Buffer> {
  const read = app.getDefaultJsonParser('error', 'error')
  return (request, body, done) => {
    try {
      if (body.length > 0) parseJson(body)
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      const { say } = thrown.facts
      const problems = say === undefined ? undefined : [`body  ${say}`]
      done(new AdminError(400, 'the request does not fit', problems))
      return
    }
    void read(request, body.toString(), done)
  }
}

/** The methods that a path may be asked with: others Fastify does not route. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

/**
 * Answers 405 with `Allow` (RFC 9110 §15.5.6) where a path exists and the method does not, so that a caller sees which of
 * the two is wrong. To be called once `routes` are all there are.
 */
export function refuseOtherMethods(
  app: AdminApp,
  routes: readonly { readonly method: string; readonly path: string }[],
): void {
  for (const [url, served] of Map.groupBy(routes, ({ path }) => path)) {
    const allowed = [...new Set(served.map(({ method }) => method))]
    const refuse = (reply: FastifyReply): FastifyReply =>
      reply
        .code(405)
        .header('Allow', allowed.join(', '))
        .send({ error: `this path takes only ${allowed.join(', ')}` })
    app.route({
      method: METHODS.filter((method) => !allowed.includes(method)),
      url,
      // Before a body is read.
      onRequest: (_request, reply) => void refuse(reply),
      handler: (_request, reply) => refuse(reply),
    })
  }
}

const NOTHING_HERE = { error: 'there is nothing at this path' }

export function makeApp(recorder: Recorder): AdminApp {
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    requestTimeout: 10_000,
    // A user name has up to 128 characters, each up to 12 when it is percent-encoded.
    routerOptions: { maxParamLength: 2048 },
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    // A path that Fastify cannot route: percent signs that are no encoding, or a parameter that is too long. Its own
    // answer repeats the path, and no other handler is asked.
    frameworkErrors: (_error, _request, reply) => {
      void (reply as FastifyReply).code(404).send(NOTHING_HERE)
    },
  })
  app.removeContentTypeParser(['text/plain', 'application/json'])
  app.addContentTypeParser(['application/json', MERGE_PATCH], { parseAs: 'buffer' }, bodyReader(app))
  app.addHook('onSend', async (_request, reply) => {
    reply.header('Cache-Control', 'no-store')
  })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send(NOTHING_HERE))
  app.setErrorHandler((thrown: FrameworkError, _request, reply) => {
    const { status, body } = errorBodyOf(thrown)
    if (status >= 500) recorder.note('error', 'admin_failed', { cause: thrown })
    if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="admin"')
    return reply.code(status).send(body)
  })
  return app
}
