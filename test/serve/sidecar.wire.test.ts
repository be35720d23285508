import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seriesOf } from '../support/metrics.ts'
import { answerJson, openUpstream } from '../support/start-upstream.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

describe('C11.2: a sidecar', () => {
  let issuer: StartedPostern
  let sidecar: StartedPostern
  let upstream: Awaited<ReturnType<typeof openUpstream>>
  let token: string

  beforeAll(async () => {
    upstream = await openUpstream()
    issuer = await startPostern({ keeps: 'nothing' })
    sidecar = await startPostern({
      config: 'sidecar.yaml',
      environment: {
        UPSTREAM_URL: upstream.url,
        ISSUER: issuer.authUrl,
        ISSUER_JWKS: `${issuer.authUrl}/.well-known/jwks.json`,
        AUDIENCE: issuer.baseUrl,
      },
    })
    const issued = await issueToken(issuer, { scope: 'fund.read target:b/ACME' })
    token = issued.access_token
    upstream.behave(answerJson({ FundSummaries: [], TotalCount: 0 }))
  })

  afterAll(async () => {
    await sidecar.close()
    await issuer.close()
    await upstream.close()
  })

  const call = (path: string, headers: Record<string, string> = { Authorization: `Bearer ${token}` }) =>
    fetch(`${sidecar.baseUrl}${path}`, { headers })

  it('serves the tokens of the issuer that it is configured with', async () => {
    const response = await call(LIST)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ Errors: [], Data: { FundSummaries: [], TotalCount: 0 } })
  })

  it('C11.1 names no client in its metrics: those of an issuer are in no directory of its own', async () => {
    expect((await call(LIST)).status).toBe(200)
    const series = [...(await seriesOf(sidecar)).keys()].filter((key) => key.includes('client='))
    expect(new Set(series.map((key) => /client="(.*?)"/.exec(key)?.[1]))).toEqual(new Set(['other']))
    const allowed = 'postern_client_decisions_total{client="other",class="allowed"}'
    expect((await seriesOf(sidecar)).get(allowed)).toBeGreaterThan(0)
  })

  it('compares the target with the URL, and needs no directory for it', async () => {
    expect((await call(LIST.replace('ACME', 'GLOBEX'))).status).toBe(404)
    expect((await call('/api/1.0/f/ACME/ANY/fund-data/fund-detail')).status).toBe(200)
  })

  it('answers identity paths and userinfo with 404', async () => {
    for (const path of ['/connect/token', '/.well-known/openid-configuration', '/.well-known/jwks.json'])
      expect((await call(path, {})).status).toBe(404)
    expect((await call('/api/1.0/u/connect/userinfo')).status).toBe(404)
  })

  it('refuses a token of any other issuer, and one without any', async () => {
    const other = await startPostern({ keeps: 'nothing' })
    const { access_token } = await issueToken(other, { scope: 'fund.read target:b/ACME' })
    await other.close()
    expect((await call(LIST, { Authorization: `Bearer ${access_token}` })).status).toBe(401)
    expect((await call(LIST, {})).status).toBe(401)
  })

  it('leaves nothing on disk', async () => {
    await call(LIST)
    expect(await readdir(sidecar.data)).toEqual([])
  })
})
