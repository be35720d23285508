/** The table of the admin API's routes, and the OpenAPI 3.1 document that is made from it. */
import { RECORD_COMMAND } from './trail/commands.ts'
import { IF_MATCH } from './operation/conditions.ts'
import { CONFIGURATION_OPERATIONS, RELOAD } from './service/configuration.ts'
import { recordOperations } from './records/records.ts'
import { EXPLAIN_OPERATIONS } from './explain/explain.ts'
import type { RecordKinds } from '../identity/directory/editors/record-kind.ts'
import { KEY_OPERATIONS } from './service/keys.ts'
import { LOCKOUT_OPERATIONS } from './revoke/lockouts.ts'
import { MAINTENANCE_OPERATIONS } from './service/maintenance.ts'
import {
  type AnswerHeader,
  MERGE_PATCH,
  ok,
  type AdminOperation,
  problemsSchema,
  type Schema,
} from './operation/operation.ts'
import { REVOCABLE_OPERATIONS } from './revoke/revocables.ts'
import { REVOKE_OPERATIONS } from './revoke/revoke.ts'
import { rolesWith } from './operation/operators.ts'
import { ACCEPT_STORE, RESTART } from './service/service.ts'
import { STATUS } from './service/status.ts'
import { TEST_TOKEN_OPERATIONS } from './explain/test-tokens.ts'

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

const json = (schema: Schema | ReturnType<typeof reference>) => ({
  content: { 'application/json': { schema } },
})

const ERROR: Schema = {
  type: 'object',
  properties: { error: { type: 'string' }, problems: { type: 'array', items: { type: 'string' } } },
  required: ['error'],
}

/** The schemas of the document by name, so that generated clients have types of these names. */
class SchemaNames {
  readonly #names = new Map<Schema, string>([
    [ERROR, 'Failure'],
    [problemsSchema, 'Problems'],
  ])

  /** One schema is one component, of the name under which it came first. */
  refer(schema: Schema, name: string): ReturnType<typeof reference> {
    const known = this.#names.get(schema)
    if (known === undefined) this.#names.set(schema, name)
    return reference(known ?? name)
  }

  all(): Readonly<Record<string, Schema>> {
    return Object.fromEntries(Array.from(this.#names, ([schema, name]) => [name, schema]))
  }
}

const EVERYWHERE = {
  400: { description: 'The request does not fit', ...json(reference('Failure')) },
  401: { description: 'Without a token that is in force', ...json(reference('Failure')) },
  403: { description: 'The role of the token does not allow it', ...json(reference('Failure')) },
  503: {
    description: 'The store is out of reach, or the audit trail cannot be written: nothing has changed',
    ...json(reference('Failure')),
  },
}

/** The tags by the first step of the path. */
const TAGS: Readonly<Record<string, string>> = {
  audit: 'The audit trail.',
  businesses: 'Businesses of the store, and their funds.',
  clients: 'Clients of the store.',
  configuration: 'The configuration that is in force.',
  consents: 'What users have consented to.',
  explain: 'Why a call is let in, or refused.',
  families: 'Refresh tokens, by the login that they come from.',
  health: 'For load balancers and for what restarts the service.',
  keys: 'The keys that tokens are signed with.',
  lockouts: 'Logins that wait after wrong passwords.',
  maintenance: 'Switches that close a part of the API.',
  metrics: 'For Prometheus.',
  'openapi.json': 'This document.',
  reload: 'Reads the configuration again.',
  restart: 'Replaces the processes that serve.',
  revoke: 'Ends tokens that were issued.',
  roles: 'Roles of the store.',
  sessions: 'Logins in browsers.',
  status: 'What the service is doing.',
  store: 'The store as a whole.',
  'test-tokens': 'Tokens for trying the API.',
  users: 'Users of the store.',
}

const tagOf = (path: string): string => path.split('/')[1] ?? ''

const HEADERS: Readonly<Record<AnswerHeader, string>> = {
  ETag: 'The version, in quotes: for `If-Match`.',
  Location: 'Its path from now on.',
}

const headersOf = (names: readonly AnswerHeader[]) =>
  names.length === 0
    ? {}
    : {
        headers: Object.fromEntries(
          names.map((name) => [name, { description: HEADERS[name], schema: { type: 'string' } }] as const),
        ),
      }

const OVERTAKEN = {
  412: {
    description: 'Another version is the latest: somebody else was faster. Nothing has changed',
    ...headersOf(['ETag']),
    ...json(reference('Problems')),
  },
}

const bodyTypesOf = ({ method }: AdminOperation): readonly string[] =>
  method === 'PATCH' ? [MERGE_PATCH, 'application/json'] : ['application/json']

const requestBodyOf = (route: AdminOperation, schema: ReturnType<typeof reference>) => ({
  required: route.bodyOptional !== true,
  content: Object.fromEntries(bodyTypesOf(route).map((type) => [type, { schema }] as const)),
})

function parametersOf({ query = {}, params = {}, conditional }: AdminOperation) {
  const parameters = [
    ...Object.entries(params).map(([name, schema]) => ({ name, in: 'path', required: true, schema })),
    ...Object.entries(query).map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
    ...(conditional === true ? [{ name: 'If-Match', in: 'header', required: false, schema: IF_MATCH }] : []),
  ]
  return parameters.length === 0 ? {} : { parameters }
}

/** Elsewhere `[person]` stands for them, unless the role has the right `administer`. */
const PEOPLE_TOLD = ' It names people to all of them.'

function operationOf(route: AdminOperation, names: SchemaNames) {
  const { operationId, summary, path, needs, body, conditional, answers, namesPeople } = route
  const name = operationId.slice(0, 1).toUpperCase() + operationId.slice(1)
  const own = Object.entries(answers).map(([status, [description, schema, headers = []]], at) => {
    // The first is the usual success.
    const answer = json(names.refer(schema, `${name}${at === 0 ? '' : status}Response`))
    return [status, { description, ...headersOf(headers), ...answer }] as const
  })
  return {
    operationId,
    summary,
    tags: [tagOf(path)],
    description: `For the roles ${rolesWith(needs).join(', ')}.${namesPeople === true ? PEOPLE_TOLD : ''}`,
    security: [{ token: [needs] }],
    ...parametersOf(route),
    ...(body && { requestBody: requestBodyOf(route, names.refer(body, `${name}Request`)) }),
    responses: { ...Object.fromEntries(own), ...EVERYWHERE, ...(conditional === true && OVERTAKEN) },
  }
}

const status: Schema = { type: 'object', properties: { status: { type: 'string' } }, required: ['status'] }

const names: Schema = { type: 'array', items: { type: 'string' } }
const degraded: Schema = {
  type: 'array',
  items: {
    type: 'object',
    properties: { name: { type: 'string' }, reason: { type: 'string' } },
    required: ['name', 'reason'],
  },
}
const readiness: Schema = {
  type: 'object',
  properties: { status: { type: 'string' }, failing: names, degraded },
  required: ['status', 'failing', 'degraded'],
}

const UNREADABLE = { 400: { description: 'The request cannot be read as HTTP' } }

/** What the listener serves without being part of the API. */
const PROBES = {
  '/metrics': {
    get: {
      operationId: 'metrics',
      summary: 'Prometheus metrics',
      description: 'Without a token, unless the configuration sets one.',
      tags: ['metrics'],
      security: [],
      responses: {
        200: { description: 'The text format', content: { 'text/plain': { schema: { type: 'string' } } } },
        401: {
          description: 'Without the token, where the configuration sets one',
          ...json(reference('Failure')),
        },
      },
    },
  },
  '/health/live': {
    get: {
      operationId: 'live',
      summary: 'Whether the process lives',
      description: 'Restart a process that does not answer.',
      tags: ['health'],
      security: [],
      responses: { 200: { description: 'It does', ...json(status) }, ...UNREADABLE },
    },
  },
  '/health/ready': {
    get: {
      operationId: 'ready',
      summary: 'Whether it should be sent calls',
      description: 'A load balancer sends calls only while the answer is 200.',
      tags: ['health'],
      security: [],
      responses: {
        200: { description: 'Ready; `degraded` names parts that work badly', ...json(readiness) },
        ...UNREADABLE,
        503: { description: 'Not ready; `failing` names what stands in the way', ...json(readiness) },
      },
    },
  },
}

/** The path as OpenAPI writes it. */
const pathOf = ({ path }: AdminOperation): string => path.replaceAll(/:(\w+)/g, '{$1}')

function pathsOf(
  routes: readonly AdminOperation[],
  names: SchemaNames,
): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes)
    paths[pathOf(route)] = {
      ...paths[pathOf(route)],
      [route.method.toLowerCase()]: operationOf(route, names),
    }
  return paths
}

/** The OpenAPI document of the given routes and of metrics and health. */
export function describeAdminApi(routes: readonly AdminOperation[], version: string) {
  const names = new SchemaNames()
  const paths = { ...PROBES, ...pathsOf(routes, names) }
  const used = new Set(Object.keys(paths).map(tagOf))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Admin API of Postern',
      version,
      description: 'What operators see and do. The command `postern` calls the same routes.',
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
      contact: { name: 'The operator of this service' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: [...used].toSorted().map((name) => ({ name, description: TAGS[name] ?? name })),
    paths,
    components: {
      schemas: names.all(),
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  }
}

/** All routes, including the one for the OpenAPI document. `version` is that of the service, `kinds` are those of its records, `added` those of extensions. */
export function adminRoutes(
  version: string,
  kinds: RecordKinds,
  added: readonly AdminOperation[],
): readonly AdminOperation[] {
  const routes: AdminOperation[] = [
    ...MAINTENANCE_OPERATIONS,
    RELOAD,
    ...REVOKE_OPERATIONS,
    ACCEPT_STORE,
    RESTART,
    ...LOCKOUT_OPERATIONS,
    STATUS,
    ...CONFIGURATION_OPERATIONS,
    ...Object.values(REVOCABLE_OPERATIONS).flat(),
    ...KEY_OPERATIONS,
    ...TEST_TOKEN_OPERATIONS,
    ...EXPLAIN_OPERATIONS,
    ...recordOperations(Object.values(kinds)),
    ...added,
    RECORD_COMMAND,
  ]
  routes.push({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'describe',
    needs: 'view',
    summary: 'This document',
    answers: { 200: ['OpenAPI 3.1', { type: 'object' }] },
    handle: () => ok(describeAdminApi(routes, version)),
  })
  return routes
}
