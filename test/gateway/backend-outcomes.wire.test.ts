/** How a backend's part of a call ended, as it is counted: an answer that cannot be made the client's is none. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withFunds } from '../support/changed-funds.ts'
import { seriesOf } from '../support/metrics.ts'
import { bearer, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const JSON_ = 'application/json'
const XML = 'application/xml'
/** Larger than what is converted at once, and than what is held of a body: such an answer is a stream. */
const LARGE = 'x'.repeat(1_100_000)

let upstream: Upstream
const gateways: { json?: StartedPostern; xml?: StartedPostern } = {}
const tokens: Record<string, string> = {}

/** Before an upstream that speaks this format. */
async function start(format: 'json' | 'xml'): Promise<void> {
  const gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withFunds({ format }),
  })
  gateways[format] = gateway
  tokens[format] = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
}

beforeAll(async () => {
  upstream = await openUpstream()
  await Promise.all([start('json'), start('xml')])
})
afterAll(async () => {
  await Promise.all([gateways.json?.close(), gateways.xml?.close(), upstream.close()])
})

/** How often each outcome was counted so far. */
async function outcomes(format: 'json' | 'xml'): Promise<Record<string, number>> {
  const series = [...(await seriesOf(gateways[format]!))]
  const counted = series.flatMap(([key, value]) => {
    const [, outcome] = /^postern_backend_calls_total\{backend="funds",outcome="(\w+)"\}$/.exec(key) ?? []
    return outcome === undefined ? [] : [[outcome, value] as const]
  })
  return Object.fromEntries(counted)
}

/** Calls an upstream that answers with this. Resolves with the status and with the outcome that was counted. */
async function call(format: 'json' | 'xml', accept: string, body: string) {
  const before = await outcomes(format)
  upstream.behave((connection) =>
    connection.respond({ headers: { 'Content-Type': format === 'json' ? JSON_ : XML }, body }),
  )
  const count = upstream.requests.length
  const { status } = await send(gateways[format]!, {
    target: LIST,
    headers: { ...bearer(tokens[format]!), Accept: accept },
  })
  expect(upstream.requests).toHaveLength(count + 1)
  const grown = async () => {
    const after = await outcomes(format)
    return Object.entries(after).flatMap(([outcome, value]) =>
      value === (before[outcome] ?? 0) ? [] : [`${outcome} ${value - (before[outcome] ?? 0)}`],
    )
  }
  await expect.poll(grown).not.toEqual([])
  return { status, counted: await grown() }
}

const BROKEN = ['upstream_broken 1']

describe('C11.1 the outcome of a call to a backend', () => {
  it.each([
    ['JSON for a client of XML', XML, '{"a":1}', '{"a":'],
    ['large JSON for a client of XML', XML, `{"a":"${LARGE}"}`, `{"a":"${LARGE}`],
    ['JSON for a client of JSON', JSON_, '{"a":1}', '{"a":'],
  ])('C11.1 is a fault where an answer cannot be converted: %s', async (_what, accept, good, bad) => {
    expect(await call('json', accept, good)).toEqual({ status: 200, counted: ['answered 1'] })
    expect(await call('json', accept, bad)).toEqual({ status: 500, counted: BROKEN })
  })

  it.each([
    ['XML for a client of JSON', '<Data><a>1</a></Data>', '<Data><a>1</Data>'],
    ['large XML for a client of JSON', `<Data><a>${LARGE}</a></Data>`, `<Data><a>${LARGE}</Data>`],
  ])('C11.1 is a fault where an answer cannot be converted: %s', async (_what, good, bad) => {
    expect(await call('xml', JSON_, good)).toEqual({ status: 200, counted: ['answered 1'] })
    expect(await call('xml', JSON_, bad)).toEqual({ status: 500, counted: BROKEN })
  })

  it('C11.1 is that of the end of an answer that is verified while it is sent', async () => {
    expect(await call('json', JSON_, `{"a":"${LARGE}"}`)).toEqual({ status: 200, counted: ['answered 1'] })
    expect(await call('json', JSON_, `{"a":"${LARGE}"`)).toEqual({ status: 200, counted: BROKEN })
  })
})
