/**
 * `node test/long/prove/openapi-load.ts [--actions 1000] [--runs 20]`: what describing an API costs when a configuration is
 * loaded: the description, its OpenAPI document, the bytes and their digest. Reports milliseconds of processor time (so
 * that other processes do not count) of the first run of a process and of the later ones, and the size; the first should
 * be below 50 ms.
 */
import { parseArgs } from 'node:util'
import { answersByStatus } from '../../../src/gateway/backends/forward/response/response.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import type { AuthorizationDescription } from '../../../src/base/contracts/calls/api-description.ts'
import type { Backend } from '../../../src/base/contracts/calls/backend.ts'
import { compileActions } from '../../../src/gateway/actions/compile-actions.ts'
import { describeApi } from '../../../src/gateway/describe/describe.ts'
import { openapiDocument } from '../../../src/gateway/openapi/document.ts'
import type { ActionConfig, AreasConfig } from '../../../src/gateway/actions/schema.ts'
import { readyDocument } from '../../../src/base/http/head/entity-tag.ts'
import { CATALOGUE } from '../../support/gateway.ts'

const { values: options } = parseArgs({
  options: { actions: { type: 'string', default: '1000' }, runs: { type: 'string', default: '20' } },
})
const MOST_MS = 50
const AREAS = 40

const backend: Backend = {
  name: 'funds',
  format: 'json',
  payload: 'envelope',
  possibleAnswers: (_action, method) => answersByStatus({ method, faults: ['upstream_timeout'] }),
  answer: () => Promise.reject(new Error('nothing is called')),
  close: () => Promise.resolve(),
}
const areas: AreasConfig = Object.fromEntries(
  Array.from({ length: AREAS }, (_, at) => [`area-${at}`, { backend: backend.name }]),
)
const text = { type: 'string' }
const data = {
  type: 'object',
  required: ['Members'],
  properties: {
    Members: {
      type: 'array',
      items: { type: 'object', properties: { Id: text, Name: text, Balance: { type: 'number' } } },
    },
  },
}
const operation = (at: number) => ({
  scopes: { any: ['fund.read'] },
  versions: [1, 2],
  items: { Members: 'Member' },
  summary: `Members of list ${at}`,
  description: 'All of them, with their balances.',
  data,
  examples: { one: { data: { Members: [{ Id: '1', Name: 'Ann', Balance: at }] } } },
})
const actions = Array.from({ length: Number(options.actions) }, (_, at) => ({
  level: at % 2 === 0 ? 'business' : 'fund',
  area: `area-${at % AREAS}`,
  action: `action-${at}/{id:uuid}`,
  methods: {
    GET: operation(at),
    ...(at % 4 === 0 && { PUT: { ...operation(at), body: { required: true, schema: data } } }),
  },
}))
const authorization: AuthorizationDescription = {
  kind: 'own',
  issuer: 'https://id.example',
  authorizationUrl: 'https://id.example/connect/authorize',
  tokenUrl: 'https://id.example/connect/token',
  grants: ['password', 'authorization_code', 'refresh_token'],
}

const problems = new Problems()
const compiled = compileActions(
  actions as unknown as readonly ActionConfig[],
  { catalogue: CATALOGUE, backends: new Map([[backend.name, backend]]), areas, upgrade: undefined },
  problems,
)
if (problems.list.some(({ severity }) => severity === 'error')) throw new Error('the actions are refused')

const processorMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const PARTS = ['description', 'document', 'bytes'] as const

function run(): { readonly parts: readonly number[]; readonly bytes: number } {
  const times = [processorMs()]
  const api = describeApi({
    actions: compiled,
    ...{ areas, catalogue: CATALOGUE, openapi: undefined, baseUrl: 'https://api.example' },
    ...{ vendor: 'acme', defaultFormat: 'json', bodyLimit: 1_048_576 },
    limits: {
      clientRate: true,
      addressRate: true,
      shedding: true,
      severalBackends: true,
      proofs: true,
      audited: true,
    },
  })
  times.push(processorMs())
  const document = openapiDocument(api, { authorization, license: undefined, contact: undefined })
  times.push(processorMs())
  const { body } = readyDocument(Buffer.from(document), {})
  times.push(processorMs())
  return { parts: times.slice(1).map((time, at) => time - (times[at] ?? 0)), bytes: body.length }
}

const runs = Array.from({ length: Number(options.runs) }, run)
const total = ({ parts }: (typeof runs)[number]): number => parts.reduce((sum, part) => sum + part, 0)
const later = runs.slice(1).toSorted((one, other) => total(one) - total(other))
const median = later[later.length >> 1]
const row = (each: (typeof runs)[number] | undefined) =>
  each && {
    ...Object.fromEntries(PARTS.map((name, at) => [name, each.parts[at]?.toFixed(1)])),
    total: total(each).toFixed(1),
    bytes: each.bytes,
  }
console.table({ first: row(runs[0]), median: row(median), slowest: row(later.at(-1)) })
process.exitCode = runs[0] !== undefined && total(runs[0]) <= MOST_MS ? 0 : 1
