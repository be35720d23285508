import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postForm } from '../../support/oauth.ts'
import { Person } from '../../support/person.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/** A service all of whose clients must push their requests. */

const CALLBACK = 'http://127.0.0.1:8090/callback'

let postern: StartedPostern

beforeAll(async () => {
  postern = await startPostern({
    keeps: 'nothing',
    change: ({ directory, ...rest }) => {
      const clients = Object.entries(directory.clients).map(([id, client]) => [
        id,
        { ...client, requirePar: true, requirePkce: false },
      ])
      return { ...rest, directory: { ...directory, clients: Object.fromEntries(clients) } }
    },
  })
})
afterAll(() => postern.close())

const ASKED = {
  redirect_uri: CALLBACK,
  response_type: 'code',
  scope: 'openid fund.read target:b/ACME',
  nonce: 'n-1',
}

const push = (params: Readonly<Record<string, string>>) =>
  postForm(postern, '/connect/par', { client: 'ledgerline', secret: 'ledgerline-secret', params })

describe('C6.2.1a where every client must push', () => {
  it('C6.3.2 discovery says so', async () => {
    const response = await fetch(`${postern.authUrl}/.well-known/openid-configuration`)
    expect(await response.json()).toMatchObject({
      pushed_authorization_request_endpoint: `${postern.authUrl}/connect/par`,
      require_pushed_authorization_requests: true,
    })
  })

  it('C6.2.1a the parameters themselves are refused, and the same ones are taken if they are pushed', async () => {
    const query = new URLSearchParams({ ...ASKED, client_id: 'ledgerline' })
    const { location } = await new Person(postern.authUrl).open(`/connect/authorize?${query.toString()}`)
    expect(location?.searchParams.get('error')).toBe('invalid_request')
    const { json, status } = await push(ASKED)
    expect(status).toBe(201)
    const reference = new URLSearchParams({
      client_id: 'ledgerline',
      request_uri: json.request_uri as string,
    })
    const page = await new Person(postern.authUrl).open(`/connect/authorize?${reference.toString()}`)
    expect(page.text).toContain('name="password"')
  })

  it('C6.2.1a another method than POST is 405', async () => {
    const response = await fetch(`${postern.authUrl}/connect/par`)
    expect({ status: response.status, allow: response.headers.get('allow') }).toEqual({
      status: 405,
      allow: 'POST',
    })
  })

  it('C11.1 the metrics tell what becomes of pushed requests', async () => {
    await push(ASKED)
    await push({ ...ASKED, scope: 'no.such' })
    const text = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    expect(text).toMatch(/^postern_pushed_requests_total\{result="pushed"\} [1-9]/m)
    expect(text).toMatch(/^postern_pushed_requests_total\{result="refused"\} [1-9]/m)
    expect(text).toMatch(/^postern_pushed_requests_total\{result="decided"\} 0/m)
  })
})
