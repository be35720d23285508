import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf } from '../support/changed-funds.ts'
import { sized } from '../support/long.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/**
 * T4.7: a large conversion keeps nobody waiting. Told by what others get done meanwhile, not by a clock; the figures are
 * those of test/long/prove/conversions.ts.
 */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
/** Other calls that are answered while one conversion runs. Were it done in their way, it would be one or two. */
const MEANWHILE = 1
/** How many elements a large answer has, and how many characters a large text. */
const ITEMS = sized(30_000, 100_000)
const CHARACTERS = sized(400_000, 1_000_000)

const upstreams: Partial<Record<'json' | 'xml', Upstream>> = {}
const gateways: Partial<Record<'json' | 'xml', StartedPostern>> = {}
const authorization: Partial<Record<'json' | 'xml', ReturnType<typeof bearer>>> = {}

/** A body of any size fits it. */
function withoutSchema(action: Configuration['actions'][number]): Configuration['actions'][number] {
  const { POST } = action.methods
  if (POST?.body === undefined) return action
  return { ...action, methods: { ...action.methods, POST: { ...POST, body: { required: true } } } }
}

beforeAll(async () => {
  for (const format of ['json', 'xml'] as const) {
    const upstream = (upstreams[format] = await openUpstream())
    const gateway = await startPostern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: (loaded) => {
        const funds = fundsOf(loaded)
        // A machine that is busy with other tests may need longer for the large body than a call waits by default.
        const timeouts = { ...funds.timeouts, firstByte: 120_000 }
        const limits = { ...loaded.server.limits, body: 8 * 1024 ** 2 }
        const server = { ...loaded.server, limits }
        const actions = loaded.actions.map(withoutSchema)
        return {
          ...loaded,
          server,
          actions,
          backends: { ...loaded.backends, funds: { ...funds, format, timeouts } },
        }
      },
    })
    gateways[format] = gateway
    authorization[format] = bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)
  }
})
afterAll(async () => {
  await Promise.all(Object.values(gateways).map((gateway) => gateway.close()))
  await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()))
})

const ask = (format: 'json' | 'xml', { headers, ...sent }: Partial<Sent> = {}) =>
  send(gateways[format]!, { target: LIST, ...sent, headers: { ...authorization[format], ...headers } })

/** The upstream answers this to whoever asks for a large answer, and next to nothing else. */
function answering(format: 'json' | 'xml', body: string): void {
  upstreams[format]!.behave((connection) => {
    const large = connection.request.target.includes('?large')
    connection.respond({
      headers: { 'Content-Type': `application/${format}` },
      body: large ? body : format === 'json' ? '{}' : '<r/>',
    })
  })
}

/** The large call, and how many others were answered before it was. */
async function withOthers<T>(format: 'json' | 'xml', large: () => Promise<T>) {
  await large() // starts the thread
  const state = { done: false, others: 0 }
  const answer = large().finally(() => (state.done = true))
  while (!state.done) {
    expect((await ask(format)).status).toBe(200)
    state.others++
  }
  return { answer: await answer, others: state.others }
}

describe('T4.7 others are answered', () => {
  it('C8.6 while a large JSON answer becomes XML', async () => {
    answering('json', `{"Numbers":[${'1,'.repeat(ITEMS)}1]}`)
    const large = () => ask('json', { target: `${LIST}?large`, headers: { Accept: 'application/xml' } })
    const { answer, others } = await withOthers('json', large)
    expect(answer.status).toBe(200)
    expect(answer.body).toContain('<Numbers type="array"><Item type="number">1</Item>')
    expect(answer.body.length).toBeGreaterThan(ITEMS * 25)
    expect(others).toBeGreaterThan(MEANWHILE)
  })

  it('C8.6 while a large XML answer becomes JSON', async () => {
    answering('xml', `<r type="array">${'<a type="number">1</a>'.repeat(ITEMS)}</r>`)
    const { answer, others } = await withOthers('xml', () => ask('xml', { target: `${LIST}?large` }))
    expect(answer.body).toBe(`{"Errors":[],"Data":{"Items":[${'1,'.repeat(ITEMS - 1)}1]}}`)
    expect(others).toBeGreaterThan(MEANWHILE)
  })

  it('C7.6 while a large body of a request becomes XML, which arrives whole', async () => {
    answering('xml', '<r/>')
    const value = { Name: '<'.repeat(CHARACTERS) }
    const headers = { 'Content-Type': 'application/json' }
    const sent = { method: 'POST', target: `${DETAIL}?large`, headers, body: JSON.stringify(value) }
    upstreams.xml!.requests.length = 0
    const { answer, others } = await withOthers('xml', () => ask('xml', sent))
    expect(answer.status).toBe(200)
    expect(others).toBeGreaterThan(MEANWHILE)
    const received = upstreams.xml!.requests.find(({ method }) => method === 'POST')!
    expect(received.body.toString()).toMatch(/<Name>(?:&lt;){100}/)
    expect(received.body.length).toBeGreaterThan(CHARACTERS * 4)
  })

  it('C7.6 what is wrong with a large body is told as with a small one', async () => {
    const headers = { 'Content-Type': 'application/json' }
    const body = `{"Name":"${'x'.repeat(200_000)}","Name":1}`
    const { status, body: told } = await ask('json', { method: 'POST', target: DETAIL, headers, body })
    expect([status, told]).toEqual([400, expect.stringContaining('the key \\"Name\\" is there twice')])
  })
})
