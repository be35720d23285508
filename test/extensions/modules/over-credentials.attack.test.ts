import { describe, expect, it } from 'vitest'
import { startOver } from '../../support/over-module.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'
import { grantEach, oauth2 } from '../../support/token-endpoint.ts'
import { at } from '../../support/streaming.ts'

/** C8.7 and C8.9: credentials of a backend, and a module around it that would like to see or replace them. */

const LIST = { target: at('fund-list') }
const FORGED = `{ 'X-Api-Key': 'forged', x_api_key: 'forged', 'X.Api.Key': 'forged', Authorization: 'Basic forged' }`

describe('C8.7 credentials of a backend under a module', () => {
  it.each([
    ['x-api-key', { header: { name: 'X-Api-Key', value: 'ours' } }, 'ours'],
    ['authorization', { bearer: 'ours' }, 'Bearer ours'],
  ])('C8.9 the module replaces %s in no spelling', async (name, auth, value) => {
    const { upstream, ask } = await startOver(`{ request: () => ({ headers: ${FORGED} }) }`, {
      under: { auth },
    })
    expect((await ask(LIST)).status).toBe(200)
    const [request] = upstream.requests
    expect(request?.headers[name]).toEqual([value])
    const folded = Object.keys(request?.headers ?? {}).filter(
      (each) => each.replaceAll(/[._]/g, '-') === name,
    )
    expect(folded).toEqual([name])
  })

  it('C8.9 the module sees them neither in the call nor in what is sent', async () => {
    const source = `{ answer: async (call) => {
      const answer = await call.forward()
      const { inspect } = await import('node:util')
      const seen = inspect([call, call.upstream, answer], { depth: 8, showHidden: true, getters: true })
      return { body: { kind: 'value', value: { seen } } }
    } }`
    const { ask } = await startOver(source, {
      under: { auth: { header: { name: 'X-Api-Key', value: 'the-secret-key' } } },
    })
    const { status, body } = await ask(LIST)
    expect(status).toBe(200)
    expect(body).toContain('fund-list')
    expect(body).not.toContain('the-secret-key')
  })

  it('C8.9 a token that the upstream refuses is replaced, and the module sees the second answer only', async () => {
    const endpoint = await startUpstream(grantEach())
    const seen = `{ response: async (call, answer) => ({ body: { kind: 'value', value: { seen: answer.status } } }) }`
    const { upstream, ask } = await startOver(seen, {
      under: { auth: oauth2(endpoint.url) },
      behaviour: (connection) => {
        const isFirst = connection.request.headers['authorization']?.[0] === 'Bearer token-1'
        if (isFirst) connection.respond({ status: 401 })
        else answerJson({})(connection)
      },
    })
    expect((await ask(LIST)).body).toContain('"seen":200')
    expect(upstream.requests.map(({ headers }) => headers['authorization'])).toEqual([
      ['Bearer token-1'],
      ['Bearer token-2'],
    ])
  })

  it('C8.9 C8.8 neither they nor what the module sets go to the other origin of a redirect', async () => {
    const other = await startUpstream(answerJson({}))
    const { upstream, ask } = await startOver(
      `{ request: () => ({ headers: { 'X-Signature': 'signed', Authorization: 'HMAC signed' } }) }`,
      {
        under: {
          auth: { header: { name: 'X-Api-Key', value: 'ours' } },
          redirects: { max: 1, within: [], origins: [other.url] },
        },
        behaviour: (connection) =>
          connection.respond({ status: 307, headers: { Location: `${other.url}/x` } }),
      },
    )
    expect((await ask(LIST)).status).toBe(200)
    expect(upstream.requests[0]?.headers).toMatchObject({ 'x-signature': ['signed'], 'x-api-key': ['ours'] })
    expect(other.requests).toHaveLength(1)
    expect(other.requests[0]?.head).not.toMatch(/signed|ours|x-postern/i)
  })
})
