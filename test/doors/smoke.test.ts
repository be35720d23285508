/** That the rest serves where an extension was deleted (`npm run doors`). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { configFiles } from '../support/config-files.ts'
import { postForm } from '../support/oauth.ts'
import { shared } from '../support/shared.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const world = shared(async () => postern({ keeps: 'nothing' }))

const bearer = async (issuer: Awaited<ReturnType<typeof postern>>) => {
  const { access_token: token } = await issueToken(issuer, {
    scope: 'api1 business.fund.list fund.read target:b/ACME',
  })
  return { Authorization: `Bearer ${token}` }
}

it('C4 a token is issued, and a call with it is answered as JSON and as XML', async () => {
  const service = await world()
  const headers = await bearer(service)
  const call = (accept: string): Promise<Response> =>
    fetch(`${service.baseUrl}${LIST}`, { headers: { ...headers, Accept: accept } })
  const json = await call('application/json')
  expect([json.status, await json.json()]).toMatchObject([200, { Errors: [], Data: { TotalCount: 2 } }])
  const xml = await call('application/xml')
  expect([xml.status, await xml.text()]).toEqual([200, expect.stringContaining('<Code>SUPER1</Code>')])
})

it('C4.4, C6.1.1 a call without a token and a wrong password are refused', async () => {
  const service = await world()
  expect((await fetch(`${service.baseUrl}${LIST}`)).status).toBe(401)
  const params = { grant_type: 'password', username: 'alice', password: 'wrong', scope: 'openid' }
  expect(await postForm(service, '/connect/token', { params })).toMatchObject({
    ...{ status: 400, json: { error: 'invalid_grant' } },
  })
})

it('C11.5.4 a file that was changed is reloaded, and what it takes away is gone', async () => {
  const audit = (process.env['POSTERN_WITHOUT'] ?? '').split(' ').includes('audit')
    ? ''
    : 'audit: { enabled: false }'
  const text = (more: string): string => `extends: ${DEMO}\nstore: { kind: memory }\n${audit}\n${more}`
  const file = configFiles({ 'own.yaml': text('') })('own.yaml')
  const service = await postern({ file })
  await bearer(service)
  writeFileSync(file, text('directory: { users: { alice: { disabled: true } } }\n'))
  const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
  const reload = await fetch(`${service.adminUrl}/reload`, {
    ...{ method: 'POST', headers: { authorization: `Bearer ${token}` } },
  })
  expect(reload.status).toBe(200)
  await expect(bearer(service)).rejects.toThrow('invalid_grant')
})

it('C11.2 a sidecar serves the tokens of its issuer', async () => {
  const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
  const issuer = await world()
  const sidecar = await postern({
    config: 'sidecar.yaml',
    environment: {
      ...{ UPSTREAM_URL: upstream.url, ISSUER: issuer.authUrl, AUDIENCE: issuer.baseUrl },
      ISSUER_JWKS: `${issuer.authUrl}/.well-known/jwks.json`,
    },
  })
  const answer = await fetch(`${sidecar.baseUrl}${LIST}`, { headers: await bearer(issuer) })
  expect([answer.status, await answer.json()]).toMatchObject([200, { Data: { TotalCount: 0 } }])
})
