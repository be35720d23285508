import { createHash, randomBytes } from 'node:crypto'
import express from 'express'
import { AuthorizationCode } from 'simple-oauth2'

const { FUNDS, ISSUER, ORIGIN, PORT, USERINFO } = process.env

const client = new AuthorizationCode({
  client: { id: 'ledgerline', secret: 'ledgerline-secret' },
  auth: {
    tokenHost: ISSUER,
    tokenPath: '/connect/token',
    authorizePath: '/connect/authorize',
  },
})

const [verifier, state] = [randomBytes(32).toString('base64url'), randomBytes(16).toString('base64url')]
const redirect_uri = `${ORIGIN}/callback`
const loginUrl = client.authorizeURL({
  redirect_uri,
  scope: 'openid profile fund.read target:b',
  state,
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
})

const ask = async (url, { token }) =>
  (await fetch(url, { headers: { Authorization: `Bearer ${token.access_token}` } })).json()

express()
  .get('/login', (_request, response) => response.redirect(loginUrl))
  .get('/callback', async ({ query }, response) => {
    if (query.state !== state) return response.status(400).end()
    const token = await client.getToken({ code: query.code, redirect_uri, code_verifier: verifier })
    const { name } = await ask(USERINFO, token)
    return response.json({ name, funds: await ask(FUNDS, token) })
  })
  .listen(Number(PORT), '127.0.0.1')
