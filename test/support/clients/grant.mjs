import express from 'express'
import session from 'express-session'
import grant from 'grant'

const { FUNDS, ISSUER, ORIGIN, PORT, USERINFO } = process.env

const login = grant.express({
  defaults: { origin: ORIGIN, transport: 'session' },
  postern: {
    oauth: 2,
    authorize_url: `${ISSUER}/connect/authorize`,
    access_url: `${ISSUER}/connect/token`,
    profile_url: USERINFO,
    token_endpoint_auth_method: 'client_secret_basic',
    client_id: 'ledgerline',
    client_secret: 'ledgerline-secret',
    scope: ['openid', 'profile', 'fund.read', 'target:b'],
    scope_delimiter: ' ',
    pkce: true,
    state: true,
    nonce: true,
    response: ['tokens', 'profile'],
    callback: '/done',
  },
})

express()
  .use(session({ secret: 'a long random text', resave: false, saveUninitialized: true }))
  .use(login)
  .get('/done', async (request, response) => {
    const { access_token, profile } = request.session.grant.response
    const answer = await fetch(FUNDS, { headers: { Authorization: `Bearer ${access_token}` } })
    response.json({ name: profile.name, funds: await answer.json() })
  })
  .listen(Number(PORT), '127.0.0.1')
