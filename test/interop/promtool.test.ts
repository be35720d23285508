import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { needing } from '../support/machine.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, basic, issueToken, MEMBER } from '../support/tokens.ts'

let gateway: StartedPostern

beforeAll(async () => {
  gateway = await startPostern()
})
afterAll(async () => {
  await gateway.close()
})

/** Something of everything that is counted: granted, refused at each door, unreadable. */
async function makeTraffic(): Promise<void> {
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const headers = { Authorization: `Bearer ${access_token}` }
  const api = `${gateway.baseUrl}/api/1.0`
  for (const path of [
    '/b/ACME/fund-data/fund-list',
    `/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`,
    '/b/GLOBEX/fund-data/fund-list',
    '/b/ACME/no/such',
    '/u/connect/userinfo',
  ]) {
    await fetch(api + path, { headers })
    await fetch(api + path)
    await fetch(api + path, { method: 'DELETE', headers })
  }
  await fetch(`${gateway.baseUrl}/api/2.0`)
  await fetch(`${gateway.authUrl}/connect/token`, { method: 'POST', headers: { Authorization: basic('x') } })
  await fetch(`${gateway.authUrl}/.well-known/jwks.json`)
}

it('C11.1 /metrics is what promtool check metrics finds clean', needing('promtool'), async () => {
  await makeTraffic()
  const response = await fetch(`${gateway.adminUrl}/metrics`)
  const input = await response.text()
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(input).toMatch(
    /^postern_decisions_total\{reason="allowed",area="fund-data",action="fund-list"\} 1$/m,
  )
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})
