import { describe, expect, it } from 'vitest'
import { withFunds } from '../support/changed-funds.ts'
import { movableClock } from '../support/movable-clock.ts'
import { AUDIENCE, startOidcProvider } from '../support/real-issuers.ts'
import { bearer, send } from '../support/requests.ts'
import { postern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { oauth2 } from '../support/token-endpoint.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** C8.7: tokens for an upstream, by an issuer that others wrote: oidc-provider. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

async function world(others: Parameters<typeof oauth2>[1]) {
  const issuer = await startOidcProvider('jwt')
  const upstream = await startUpstream()
  const clock = movableClock(Date.now())
  const gateway = await postern({
    config: 'upstream.yaml',
    clock,
    environment: { UPSTREAM_URL: upstream.url },
    change: withFunds({
      auth: oauth2(`${issuer.url}/token`, { clientId: 'app', clientSecret: 'app-secret', ...others }),
    }),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const get = async () => (await send(gateway, { target: LIST, headers: bearer(access_token) })).status
  const given = () => upstream.requests.map(({ headers }) => headers['authorization']?.join() ?? '')
  return { issuer, upstream, gateway, clock, get, given }
}

const claimsOf = (authorization: string): unknown =>
  JSON.parse(Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString())

describe('C8.7 oidc-provider', () => {
  it.each(['basic', 'post'] as const)(
    'C8.7 gives a token to a client that authenticates by %s, with the scope and resource that were asked for',
    async (clientAuthentication) => {
      const { issuer, get, given } = await world({
        clientAuthentication,
        scope: 'fund.read',
        resource: AUDIENCE,
      })
      expect(await get()).toBe(200)
      expect(await get()).toBe(200)
      expect(claimsOf(given()[0] ?? '')).toMatchObject({
        client_id: 'app',
        scope: 'fund.read',
        aud: AUDIENCE,
        iss: issuer.url,
      })
      expect(given()[1]).toBe(given()[0])
      expect(issuer.asked('/token')).toBe(1)
    },
  )

  it('C8.7 is asked for another token when the upstream refuses one, and ahead of its end', async () => {
    const { issuer, upstream, clock, get, given } = await world({ scope: 'fund.read' })
    await get()
    const [refused] = given()
    upstream.behave((connection) => {
      if (connection.request.headers['authorization']?.join() === refused) connection.respond({ status: 401 })
      else answerJson({ ok: true })(connection)
    })
    expect(await get()).toBe(200)
    expect(issuer.asked('/token')).toBe(2)
    clock.advance(571_000)
    expect(await get()).toBe(200)
    await expect.poll(() => issuer.asked('/token')).toBe(3)
  })

  it('C8.7 that knows no such client is 503, and the log says what it said', async () => {
    const { gateway, upstream, get } = await world({ clientSecret: 'another-secret' })
    expect(await get()).toBe(503)
    expect(upstream.requests).toHaveLength(0)
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ event: 'upstream_token_failed', detail: 'it answered 401 (invalid_client)' }),
    )
    expect(gateway.logLines().join()).not.toContain('another-secret')
  })
})
