import express from 'express'
import { generators, Issuer } from 'openid-client-5'

const { FUNDS, ISSUER, ORIGIN, PORT } = process.env

const { Client } = await Issuer.discover(ISSUER)
const client = new Client({
  client_id: 'ledgerline',
  client_secret: 'ledgerline-secret',
  redirect_uris: [`${ORIGIN}/callback`],
  response_types: ['code'],
})

const verifier = generators.codeVerifier()
const [state, nonce] = [generators.state(), generators.nonce()]
const loginUrl = client.authorizationUrl({
  scope: 'openid profile fund.read target:b',
  code_challenge: generators.codeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
  nonce,
})

express()
  .get('/login', (_request, response) => response.redirect(loginUrl))
  .get('/callback', async (request, response) => {
    const checks = { code_verifier: verifier, state, nonce }
    const tokens = await client.callback(`${ORIGIN}/callback`, client.callbackParams(request), checks)
    const { name } = await client.userinfo(tokens)
    const { body } = await client.requestResource(FUNDS, tokens)
    response.json({ name, funds: JSON.parse(body) })
  })
  .listen(Number(PORT), '127.0.0.1')
