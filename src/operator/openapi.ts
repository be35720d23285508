/** The table of the admin API's routes, and the OpenAPI 3.1 document that is made from it. */
import { AUDIT_OPERATIONS, REDACT } from './audit.ts'
import { IF_MATCH } from './conditions.ts'
import { CONFIGURATION_OPERATIONS, RELOAD } from './configuration.ts'
import { RECORD_OPERATIONS } from './records.ts'
import { EXPLAIN_OPERATIONS } from './explain.ts'
import { KEY_OPERATIONS } from './keys.ts'
import { LOCKOUT_OPERATIONS } from './lockouts.ts'
import { MAINTENANCE_OPERATIONS } from './maintenance.ts'
import {
  type AnswerHeader,
  MERGE_PATCH,
  ok,
  type Operation,
  problemsSchema,
  type Schema,
} from './operation.ts'
import { REVOCABLE_OPERATIONS } from './revocables.ts'
import { REVOKE_OPERATIONS } from './revoke.ts'
import { rolesWith } from './operators.ts'
import { ACCEPT_STORE, RESTART } from './service.ts'
import { STATUS } from './status.ts'
import { TEST_TOKEN_OPERATIONS } from './test-tokens.ts'

const json = (schema: Schema) => ({ content: { 'application/json': { schema } } })

const ERROR: Schema = {
  type: 'object',
  properties: { error: { type: 'string' }, problems: { type: 'array', items: { type: 'string' } } },
  required: ['error'],
}

const EVERYWHERE = {
  400: { description: 'The request does not fit', ...json(ERROR) },
  401: { description: 'Without a token that is in force', ...json(ERROR) },
  403: { description: 'The role of the token does not allow it', ...json(ERROR) },
  503: {
    description: 'The store is out of reach, or the audit trail cannot be written: nothing has changed',
    ...json(ERROR),
  },
}

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
    ...json(problemsSchema),
  },
}

const bodyTypesOf = ({ method }: Operation): readonly string[] =>
  method === 'PATCH' ? [MERGE_PATCH, 'application/json'] : ['application/json']

const requestBodyOf = (route: Operation, schema: Schema) => ({
  required: route.bodyOptional !== true,
  content: Object.fromEntries(bodyTypesOf(route).map((type) => [type, { schema }] as const)),
})

function parametersOf({ query = {}, params = {}, conditional }: Operation) {
  const parameters = [
    ...Object.entries(params).map(([name, schema]) => ({ name, in: 'path', required: true, schema })),
    ...Object.entries(query).map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
    ...(conditional === true ? [{ name: 'If-Match', in: 'header', required: false, schema: IF_MATCH }] : []),
  ]
  return parameters.length === 0 ? {} : { parameters }
}

/** Elsewhere `[person]` stands for them, unless the role has the right `administer`. */
const PEOPLE_TOLD = ' It names people to all of them.'

function operationOf(route: Operation) {
  const { operationId, summary, needs, body, conditional, answers, namesPeople } = route
  const own = Object.entries(answers).map(
    ([status, [description, schema, headers = []]]) =>
      [status, { description, ...headersOf(headers), ...json(schema) }] as const,
  )
  return {
    operationId,
    summary,
    description: `For the roles ${rolesWith(needs).join(', ')}.${namesPeople === true ? PEOPLE_TOLD : ''}`,
    security: [{ token: [needs] }],
    ...parametersOf(route),
    ...(body && { requestBody: requestBodyOf(route, body) }),
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
      summary: 'Prometheus metrics; without the token, unless the configuration sets one',
      security: [],
      responses: {
        200: { description: 'The text format', content: { 'text/plain': { schema: { type: 'string' } } } },
        401: { description: 'Without the token, where the configuration sets one', ...json(ERROR) },
      },
    },
  },
  '/health/live': {
    get: {
      operationId: 'live',
      summary: 'Whether the process lives',
      security: [],
      responses: { 200: { description: 'It does', ...json(status) }, ...UNREADABLE },
    },
  },
  '/health/ready': {
    get: {
      operationId: 'ready',
      summary: 'Whether it should be sent calls',
      security: [],
      responses: {
        200: { description: 'Ready; `degraded` names parts that work badly', ...json(readiness) },
        ...UNREADABLE,
        503: { description: 'Not ready; `failing` names what stands in the way', ...json(readiness) },
      },
    },
  },
}

/** As OpenAPI writes it. */
const pathOf = ({ path }: Operation): string => path.replaceAll(/:(\w+)/g, '{$1}')

function pathsOf(routes: readonly Operation[]): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes)
    paths[pathOf(route)] = { ...paths[pathOf(route)], [route.method.toLowerCase()]: operationOf(route) }
  return paths
}

/** The OpenAPI document of the given routes and of metrics and health. */
export const describeAdminApi = (routes: readonly Operation[], version: string) => ({
  openapi: '3.1.0',
  info: {
    title: 'Admin API of Postern',
    version,
    license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: '/' }],
  security: [{ token: [] }],
  paths: { ...PROBES, ...pathsOf(routes) },
  components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
})

/** All routes, including the one for the OpenAPI document. `version` is that of the service. */
export function adminRoutes(version: string): readonly Operation[] {
  const routes: Operation[] = [
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
    ...RECORD_OPERATIONS,
    ...AUDIT_OPERATIONS,
    REDACT,
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
