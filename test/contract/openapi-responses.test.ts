import { Check } from 'typebox/schema'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ENVELOPE_SCHEMA, readXml } from '../../src/http/xml-read.ts'
import { Fault } from '../../src/kernel/faults.ts'
import {
  type OpenapiDocument,
  type OpenapiMedia,
  type OpenapiOperation,
  type OpenapiResponse,
  readDescription,
  resolved,
} from '../support/openapi.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

let gateway: StartedPostern
let document: OpenapiDocument
let authorization: { readonly Authorization: string }

beforeAll(async () => {
  gateway = await startPostern()
  document = await readDescription(gateway)
  authorization = bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)
})
afterAll(() => gateway.close())

const MEMBER = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'

/** A call of an operation that it answers 200, by the operation's own example. */
function goodCall(path: string, method: string, operation: OpenapiOperation): Sent {
  const target = path
    .replace('{businessCode}', 'ACME')
    .replace('{fundCode}', 'SUPER1')
    .replace('{memberId}', MEMBER)
  const media = operation.requestBody?.content['application/json']
  const [example] = Object.values(media?.examples ?? {})
  const body =
    example === undefined
      ? undefined
      : JSON.stringify((resolved(document, example) as { readonly value: unknown }).value)
  return {
    ...{ method, target },
    headers: {
      ...authorization,
      Accept: 'application/json',
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body }),
  }
}

type Provocation = (good: Sent) => Promise<Awaited<ReturnType<typeof send>>>

const changed =
  (change: (good: Sent) => Partial<Sent>): Provocation =>
  (good) =>
    send(gateway, { ...good, ...change(good) })

const withHeaders = (headers: Sent['headers']): Provocation =>
  changed((good) => ({ headers: { ...good.headers, ...headers } }))

/** While the service's admission throws what `thrown` makes. */
const whileRefused =
  (step: 'admit' | 'occupy', thrown: () => Error): Provocation =>
  async (good) => {
    const { admission } = gateway.world
    Object.assign(admission, {
      [step]: () => {
        throw thrown()
      },
    })
    try {
      return await send(gateway, good)
    } finally {
      Reflect.deleteProperty(admission, step) // what it is by its class
    }
  }

/** How each status comes about. A status without a row here fails the test below. */
const PROVOKED: Readonly<Record<string, Provocation>> = {
  200: changed(() => ({})),
  400: withHeaders({ Host: undefined }),
  401: changed(({ headers }) => ({ headers: { ...headers, Authorization: undefined } })),
  404: changed(({ target }) => ({ target: target.replace('ACME', 'NOWHERE') })),
  405: changed(() => ({ method: 'DELETE' })),
  406: withHeaders({ Accept: 'image/png' }),
  413: withHeaders({ 'Content-Length': '1048577' }),
  414: changed(({ target }) => ({ target: `${target}?${'a'.repeat(8200)}` })),
  415: withHeaders({ 'Content-Type': 'text/plain' }),
  429: whileRefused('admit', () => new Fault('too_many_calls')),
  431: withHeaders({ 'X-Large': 'a'.repeat(20_000) }),
  500: whileRefused('occupy', () => new Error('a defect')),
  501: withHeaders({ Accept: 'application/vnd.postern.action.v9+json' }),
  503: async (good) => {
    gateway.switches.set([{ scope: { kind: 'service' } }])
    try {
      return await send(gateway, good)
    } finally {
      gateway.switches.set([])
    }
  },
}

/** A schema with what its references mean in their places. */
function whole(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(whole)
  const meant = resolved(document, node)
  if (typeof meant !== 'object' || meant === null) return meant
  return Object.fromEntries(Object.entries(meant).map(([key, value]) => [key, whole(value)]))
}

const typeOf = (contentType: unknown): string => String(contentType).split(';')[0] ?? ''

/** Headers that an answer may lack: there is no rate in the demo, and each is optional. */
const isOptional = (name: string): boolean => name.startsWith('RateLimit')

function expectFits(answer: Awaited<ReturnType<typeof send>>, response: OpenapiResponse): void {
  for (const name of Object.keys(response.headers))
    if (!isOptional(name)) expect(answer.headers).toHaveProperty([name.toLowerCase()])
  const media: OpenapiMedia | undefined = response.content?.[typeOf(answer.headers['content-type'])]
  expect(media, `no ${String(answer.headers['content-type'])}`).toBeDefined()
  const value: unknown = JSON.parse(answer.body)
  expect(Check(whole(media?.schema) as object, value), answer.body).toBe(true)
}

describe('C11.3.3 every response that the demo’s document has', () => {
  it('C11.3.3 comes about, with its headers and a body that fits its schema', async () => {
    let provoked = 0
    for (const [path, operations] of Object.entries(document.paths))
      for (const [method, operation] of Object.entries(operations)) {
        const good = goodCall(path, method.toUpperCase(), operation)
        for (const [status, node] of Object.entries(operation.responses)) {
          const answer = await PROVOKED[status]?.(good)
          expect(answer?.status, `${method} ${path} ${status}: ${answer?.body ?? 'not provoked'}`).toBe(
            Number(status),
          )
          if (answer) expectFits(answer, resolved(document, node) as OpenapiResponse)
          provoked += 1
        }
      }
    expect(provoked).toBeGreaterThan(90)
  })

  it('C11.3.2 comes in every type that it has for a success', async () => {
    for (const [path, operations] of Object.entries(document.paths)) {
      const operation = operations['get']
      if (operation === undefined) continue
      const { content = {} } = resolved(document, operation.responses['200']) as OpenapiResponse
      for (const [type, { schema }] of Object.entries(content)) {
        const good = goodCall(path, 'GET', operation)
        const answer = await send(gateway, { ...good, headers: { ...good.headers, Accept: type } })
        expect(answer.headers['content-type']).toBe(`${type}; charset=utf-8`)
        const value: unknown = type.endsWith('xml')
          ? JSON.parse(JSON.stringify(readXml(Buffer.from(answer.body), ENVELOPE_SCHEMA)))
          : JSON.parse(answer.body)
        expect(Check(whole(schema) as object, value), `${type} ${answer.body}`).toBe(true)
      }
    }
  })
})
