import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { readyDocument } from '../../src/base/http/head/entity-tag.ts'
import { watchAnswers } from '../support/documented.ts'
import { expectFits } from '../support/fits-document.ts'
import {
  type OpenapiDocument,
  type OpenapiOperation,
  type OpenapiResponse,
  readDescription,
  resolved,
} from '../support/openapi.ts'
import { goodAnswer, goodCall, type Provoked, waysAt } from '../support/provoked.ts'
import { bearer, send } from '../support/requests.ts'
import { postern, startPostern } from '../support/start-postern.ts'
import { openUpstream } from '../support/start-upstream.ts'
import { withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const HOUR = 3_600_000
const RATE = { requests: 1, per: HOUR, burst: 1 }
const GENEROUS = { requests: 100_000, per: 1000, burst: 100_000 }

/** Everything that a description may have to tell: rates, ranges, websockets, own types, a report-only area. */
function rich(loaded: Configuration): Configuration {
  const { backends, areas, load, ...rest } = withStream(loaded)
  const funds = { ...backends['funds']!, payload: 'envelope' } as Configuration['backends'][string]
  return {
    ...rest,
    backends: { ...backends, funds },
    areas: { ...areas, 'member-data': { ...areas['member-data']!, mode: 'report-only' } },
    load: {
      ...load,
      clients: { ...load.clients, rate: GENEROUS, byId: { 'globex-ledger': { rate: RATE } } },
      addresses: { rate: GENEROUS },
    },
  }
}

async function startRich(): Promise<Provoked> {
  const upstream = await openUpstream()
  const environment = { UPSTREAM_URL: upstream.url }
  const gateway = await startPostern({ keeps: 'nothing', config: 'upstream.yaml', environment, change: rich })
  const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const bob = { client: 'globex-ledger', username: 'bob', scope: 'fund.read target:b/GLOBEX' }
  const { access_token: spent } = await issueToken(gateway, bob)
  await send(gateway, { target: '/api/1.0/b/GLOBEX/fund-data/fund-list', headers: bearer(spent) })
  return { gateway, token, spent, upstream }
}

async function startDemo(): Promise<Provoked> {
  const gateway = await startPostern({ keeps: 'nothing' })
  return { gateway, token: (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token }
}

const WORLDS = { 'the demo': startDemo, 'a rich configuration': startRich }

const operationsOf = (document: OpenapiDocument) =>
  Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => [path, method, operation] as const),
  )

describe.each(Object.entries(WORLDS))('C11.3.3 the document of %s', (_name, start) => {
  let world: Provoked
  let document: OpenapiDocument
  beforeAll(async () => {
    world = await start()
    document = await readDescription(world.gateway)
  })
  afterAll(async () => {
    await world.gateway.close()
    await world.upstream?.close()
  })

  /** Calls an operation in every way. Gives `STATUS` and `STATUS HEADER` of what it was answered. */
  async function provoke(at: readonly [string, string, OpenapiOperation]): Promise<ReadonlySet<string>> {
    const met = new Set<string>()
    for (const [, way] of waysAt(world)) {
      const usual = goodAnswer(document, at[2])
      world.upstream?.behave((connection) => connection.respond(usual))
      const answer = await way(world, goodCall(document, world.token, at), usual)
      // The answer to another method is that of the path, which its own operation may have (C4.6).
      const { status, headers } = expectFits(document, at[2], answer)
      for (const each of [status, ...headers.map((name) => `${status} ${name}`)]) met.add(each)
    }
    return met
  }

  it('C11.3.3 has every answer of every operation, and each that it has comes about', async () => {
    const missing: string[] = []
    const headers = new Map<string, boolean>()
    for (const at of operationsOf(document)) {
      const [, , { operationId, responses }] = at
      const met = await provoke(at)
      for (const [status, node] of Object.entries(responses)) {
        if (!met.has(status)) missing.push(`${operationId} ${status}`)
        for (const name of Object.keys((resolved(document, node) as OpenapiResponse).headers))
          headers.set(name, headers.get(name) === true || met.has(`${status} ${name}`))
      }
    }
    expect(missing).toEqual([])
    expect([...headers].filter(([, isMet]) => !isMet)).toEqual([])
  })

  it('C11.3.2 has the types that a success comes in, and it comes in each of them', async () => {
    for (const at of operationsOf(document).filter(([, method]) => method === 'get')) {
      const usual = goodAnswer(document, at[2])
      world.upstream?.behave((connection) => connection.respond(usual))
      const { content = {} } = resolved(document, at[2].responses['200']) as OpenapiResponse
      for (const type of Object.keys(content).filter((each) => !each.includes('*'))) {
        const good = goodCall(document, world.token, at)
        const answer = await send(world.gateway, { ...good, headers: { ...good.headers, Accept: type } })
        expect(expectFits(document, at[2], answer).status).toBe('200')
        expect(answer.headers['content-type']?.split(';')[0], at[2].operationId).toBe(type)
      }
    }
  })
})

describe('C11.3.2 the document before a data service that may answer nothing', () => {
  it('C8.6 C11.3.2 tells that `Data` may be empty, also where its schema requires members', async () => {
    const upstream = await openUpstream((connection) => connection.respond({ status: 204 }))
    onTestFinished(() => upstream.close())
    const data = { type: 'object', properties: { Name: { type: 'string' } }, required: ['Name'] } as const
    const gateway = await postern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: ({ actions, ...rest }) => ({
        ...rest,
        actions: actions.map((action) =>
          action.action === 'fund-list'
            ? { ...action, methods: { GET: { ...action.methods['GET']!, data, examples: {} } } }
            : action,
        ),
      }),
    })
    const document = await readDescription(gateway)
    const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    const list = operationsOf(document).find(([path]) => path.endsWith('/fund-list'))!
    const { body, ...answer } = await send(gateway, goodCall(document, token, list))
    expect(JSON.parse(body)).toEqual({ Errors: [], Data: {} })
    expect(expectFits(document, list[2], { ...answer, body }).status).toBe('200')
    const other = JSON.stringify({ Errors: [], Data: { Title: 'no name' } })
    expect(() => expectFits(document, list[2], { ...answer, body: other })).toThrow('Title')
  })
})

describe('C11.3.3 the services that tests start in this process', () => {
  it('C11.3.3 are compared with their documents, whatever asks them', async () => {
    const gateway = await postern({ keeps: 'nothing' })
    const { paths, ...rest } = await readDescription(gateway)
    const LIST = '/api/1.0/b/{businessCode}/fund-data/fund-list'
    const responses = { ...paths[LIST]!['get']!.responses }
    Reflect.deleteProperty(responses, '401')
    const poorer = { ...rest, paths: { [LIST]: { get: { ...paths[LIST]!['get'], responses } } } }
    const judge = watchAnswers(gateway.port, {
      worker: { document: readyDocument(Buffer.from(JSON.stringify(poorer)), {}) },
    })
    await fetch(gateway.baseUrl + LIST.replace('{businessCode}', 'ACME'))
    expect(judge).toThrow(/^GET .* was answered 401, which the description of the API does not have$/)
  })
})
