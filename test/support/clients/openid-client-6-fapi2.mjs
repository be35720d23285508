import express from 'express'
import * as client from 'openid-client'

const { FUNDS, ISSUER, ORIGIN, PORT } = process.env

// Keep the key where other processes of the application find it, and its public part at the client's `jwksUri`.
const ES256 = { name: 'ECDSA', namedCurve: 'P-256' }
const { privateKey, publicKey } = await crypto.subtle.generateKey(ES256, true, ['sign', 'verify'])

// Leave allowInsecureRequests out where Postern has https.
const postern = await client.discovery(
  new URL(ISSUER),
  'ledgerline',
  { id_token_signed_response_alg: 'ES256' },
  client.PrivateKeyJwt(privateKey),
  { execute: [client.allowInsecureRequests] },
)
const DPoP = client.getDPoPHandle(postern, await client.randomDPoPKeyPair())

const verifier = client.randomPKCECodeVerifier()
const [state, nonce] = [client.randomState(), client.randomNonce()]
const pushRequest = async () =>
  client.buildAuthorizationUrlWithPAR(
    postern,
    {
      redirect_uri: `${ORIGIN}/callback`,
      scope: 'openid profile fund.read target:b',
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    },
    { DPoP },
  )

express()
  .get('/jwks.json', async (_request, response) => {
    const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey)
    response.json({ keys: [{ kty, crv, x, y }] })
  })
  .get('/login', async (_request, response) => response.redirect((await pushRequest()).href))
  .get('/callback', async ({ url }, response) => {
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    const back = new URL(url, ORIGIN)
    const tokens = await client.authorizationCodeGrant(postern, back, checks, undefined, { DPoP })
    const { access_token } = tokens
    const { name } = await client.fetchUserInfo(postern, access_token, tokens.claims().sub, { DPoP })
    const call = [postern, access_token, new URL(FUNDS), 'GET', undefined, undefined, { DPoP }]
    const answer = await client.fetchProtectedResource(...call)
    response.json({ name, funds: await answer.json() })
  })
  .listen(Number(PORT), '127.0.0.1')
