import express from 'express'
import * as client from 'openid-client'

const { FUNDS, ISSUER, ORIGIN, PORT } = process.env

// Leave allowInsecureRequests out where Postern has https.
const postern = await client.discovery(
  new URL(ISSUER),
  'ledgerline',
  { id_token_signed_response_alg: 'RS256' },
  client.ClientSecretBasic('ledgerline-secret'),
  { execute: [client.allowInsecureRequests] },
)

const verifier = client.randomPKCECodeVerifier()
const [state, nonce] = [client.randomState(), client.randomNonce()]
const loginUrl = client.buildAuthorizationUrl(postern, {
  redirect_uri: `${ORIGIN}/callback`,
  scope: 'openid profile fund.read target:b',
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
  nonce,
})

express()
  .get('/login', (_request, response) => response.redirect(loginUrl.href))
  .get('/callback', async ({ url }, response) => {
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    const tokens = await client.authorizationCodeGrant(postern, new URL(url, ORIGIN), checks)
    const { name } = await client.fetchUserInfo(postern, tokens.access_token, tokens.claims().sub)
    const answer = await client.fetchProtectedResource(postern, tokens.access_token, new URL(FUNDS), 'GET')
    response.json({ name, funds: await answer.json() })
  })
  .listen(Number(PORT), '127.0.0.1')
