import express from 'express'
import openid from 'express-openid-connect'
import session from 'express-session'

const { FUNDS, ISSUER, ORIGIN, PORT } = process.env

const login = openid.auth({
  issuerBaseURL: ISSUER,
  baseURL: ORIGIN,
  clientID: 'ledgerline',
  clientSecret: 'ledgerline-secret',
  clientAuthMethod: 'client_secret_basic',
  secret: 'a long random text of at least 32 characters',
  authorizationParams: { response_type: 'code', scope: 'openid profile fund.read target:b' },
  backchannelLogout: { store: new session.MemoryStore() },
})

express()
  .use(login)
  .get('/', async ({ oidc }, response) => {
    const answer = await fetch(FUNDS, {
      headers: { Authorization: `Bearer ${oidc.accessToken.access_token}` },
    })
    response.json({ name: oidc.user.name, funds: await answer.json() })
  })
  .listen(Number(PORT), '127.0.0.1')
