/**
 * The admin listener (C11.1): metrics, health, the admin API and its token. Fastify routes the calls. Requests are
 * checked by the validator of bodies under `/api`, not by Fastify's Ajv. Trap: Fastify's default errors repeat the path
 * and the exception's message, so both handlers are replaced.
 */
import fastify, { type FastifyInstance, type FastifyRequest, type FastifySchemaCompiler } from 'fastify'
import type { AddressInfo } from 'node:net'
import type { Recorder } from '../../contracts/recorder.ts'
import type { JsonValue } from '../../http/json-value.ts'
import { compileProblems } from '../../http/validate-body.ts'
import { equalSecrets, newSecret } from '../../kernel/ids.ts'
import { splitListenAddress } from '../../kernel/listen-address.ts'
import {
  AdminError,
  type AdminRequest,
  type AdminRoute,
  type FrameworkError,
  members,
  type OperatorControl,
  type Schema,
  errorBodyOf,
} from './routes.ts'
import type { AdminConfig } from '../config.ts'
import type { Health } from '../health.ts'
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'

export interface AdminParts {
  readonly config: AdminConfig
  readonly health: Health
  readonly recorder: Recorder
  readonly metrics: () => { readonly contentType: string; readonly text: Promise<string> }
  /** Every route of it requires the token. */
  readonly api?: AdminApi
}

export interface AdminApi {
  readonly token: string
  readonly routes: readonly AdminRoute[]
  readonly control: OperatorControl
}

export interface AdminListener {
  readonly port: number
  /** The port of the read-only listener, if one is configured. */
  readonly probesPort: number | undefined
  close(): Promise<void>
}

/** Starts the admin listener and, if configured, the read-only one. Rejects if an address cannot be bound. */
export async function startAdminListener(parts: AdminParts): Promise<AdminListener> {
  const { config } = parts
  const admin = await listen(makeAdmin(parts), config.listen)
  const probes = config.probes === undefined ? undefined : await listen(makeProbes(parts), config.probes)
  return {
    port: admin.port,
    probesPort: probes?.port,
    close: async () => {
      await Promise.all([admin.app.close(), probes?.app.close()])
    },
  }
}

interface Listening {
  readonly app: FastifyInstance
  readonly port: number
}

async function listen(app: FastifyInstance, address: string): Promise<Listening> {
  await app.listen(splitListenAddress(address))
  return { app, port: (app.server.address() as AddressInfo).port }
}

function makeAdmin(parts: AdminParts): FastifyInstance {
  const app = makeApp(parts.recorder)
  addHealth(app, parts.health)
  addGuarded(app, parts.config.token, (guarded) => addMetrics(guarded, parts))
  const { api } = parts
  if (api)
    addGuarded(app, api.token, (guarded) => {
      for (const route of api.routes) addRoute(guarded, route, api.control)
    })
  return app
}

/** Adds routes that require the token, if there is one. */
function addGuarded(
  app: FastifyInstance,
  token: string | undefined,
  add: (app: FastifyInstance) => void,
): void {
  void app.register((guarded, _options, done) => {
    if (token !== undefined) guarded.addHook('onRequest', requireToken(token))
    add(guarded)
    done()
  })
}

/** For probes and scrapers, on any address. It needs no token: its routes change nothing and show no secret. */
function makeProbes(parts: AdminParts): FastifyInstance {
  const app = makeApp(parts.recorder)
  addHealth(app, parts.health)
  addMetrics(app, parts)
  return app
}

/** The schema of a body or of the query. An optional body is checked only if it is sent. */
interface RequestSchema {
  readonly optional: boolean
  readonly schema: Schema
}

/** Throws RangeError, when the route is added, on a schema keyword that the validator does not support. */
const compileRequest: FastifySchemaCompiler<RequestSchema> = ({
  schema: { optional, schema },
  httpPart = '',
}) => {
  const problemsOf = compileProblems(schema)
  return (value: JsonValue) => {
    if (optional && value === null) return true
    const problems = problemsOf(value).map(
      ({ field, why }) => `${[httpPart, field].filter(Boolean).join('.')}  ${why}`,
    )
    return problems.length === 0 || { error: new AdminError(400, 'the request does not fit', problems) }
  }
}

/** Replaces Fastify's schema compilers (Ajv, fast-json-stringify), so that they are not loaded: none of them is used. */
const unused = (): never => {
  throw new TypeError('the admin listener has a validator of its own, and no schema of an answer')
}

function makeApp(recorder: Recorder): FastifyInstance {
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    requestTimeout: 10_000,
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  })
  app.setValidatorCompiler(compileRequest)
  app.removeContentTypeParser('text/plain')
  app.addHook('onSend', async (_request, reply) => {
    reply.header('Cache-Control', 'no-store')
  })
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: 'there is nothing at this path' }),
  )
  app.setErrorHandler((thrown: FrameworkError, _request, reply) => {
    const { status, body } = errorBodyOf(thrown)
    if (status >= 500) recorder.note('error', 'admin_failed', { cause: thrown })
    if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="admin"')
    return reply.code(status).send(body)
  })
  return app
}

function requireToken(token: string): (request: FastifyRequest) => Promise<void> {
  const expected = `Bearer ${token}`
  return (request) =>
    equalSecrets(request.headers.authorization ?? '', expected)
      ? Promise.resolve()
      : Promise.reject(new AdminError(401, 'send the admin token as "Authorization: Bearer"'))
}

function addRoute(app: FastifyInstance, route: AdminRoute, control: OperatorControl): void {
  const { method, path: url, body, bodyOptional, query = {}, handle } = route
  app.route({
    method,
    url,
    schema: {
      querystring: { optional: false, schema: members(query) } satisfies RequestSchema,
      ...(body && { body: { optional: bodyOptional === true, schema: body } satisfies RequestSchema }),
    },
    handler: async (request, reply) => {
      const answer = await handle(control, readRequest(request))
      return reply.code(answer.status).send(answer.body)
    },
  })
}

function readRequest(request: FastifyRequest): AdminRequest {
  const body = (request.body ?? {}) as AdminRequest['body']
  const query = (request.query ?? {}) as AdminRequest['query']
  const { by, reason } = { ...query, ...body }
  const said = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  return { body, query, operator: { by: said(by), reason: said(reason), via: request.ip } }
}

function addHealth(app: FastifyInstance, health: Health): void {
  app.get('/health/live', () => ({ status: 'live' }))
  app.get('/health/ready', (_request, reply) => {
    const { ready, failing, degraded } = health.readiness()
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', failing, degraded })
  })
}

function addMetrics(app: FastifyInstance, { metrics }: AdminParts): void {
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = metrics()
    return reply.type(contentType).send(await text)
  })
}

/**
 * The file with the token of the admin API cannot be used, so the service must not start (T7). The message says what to
 * do.
 */
export class AdminTokenError extends Error {
  override readonly name = 'AdminTokenError'
}

/** The file that holds the token if the configuration gives none. The first start creates it. */
export const adminTokenFile = (data: string): string => join(data, 'admin-token')

const OTHERS = 0o077
const SHORTEST = 16
// Windows has no mode bits: the folder's access list decides there who may read.
const HAS_MODES = process.platform !== 'win32'

/**
 * Reads the token in a data folder. Rejects with AdminTokenError if other users may read the file or the token is too
 * short, and with the system's error if the file cannot be read.
 */
export async function readAdminToken(data: string): Promise<string> {
  const path = adminTokenFile(data)
  await using file = await open(path, 'r')
  // The mode of the open file, so that the file that was checked is the file that is read.
  const { mode } = await file.stat()
  if (HAS_MODES && (mode & OTHERS) !== 0)
    throw new AdminTokenError(
      `The admin token ${path} is open to other users. Delete the file; the next start makes another. If only its ` +
        'group may read it, and that is this service alone, set `dataGroup: own`.',
    )
  const token = (await file.readFile('utf8')).trim()
  if (token.length < SHORTEST)
    throw new AdminTokenError(
      `The admin token ${path} is too short. Delete the file; the next start makes another.`,
    )
  return token
}

/** Reads the token in a data folder; creates it if there is none. Rejects as `readAdminToken` does. */
export async function ensureAdminToken(data: string): Promise<string> {
  await mkdir(data, { recursive: true, mode: 0o700 })
  try {
    await using file = await open(adminTokenFile(data), 'wx', 0o600)
    await file.writeFile(`${newSecret()}\n`)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown
  }
  return readAdminToken(data)
}
