import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'

const { FUNDS, ISSUER, PORT } = process.env

const config = {
  providers: [
    {
      id: 'postern',
      name: 'Postern',
      type: 'oidc',
      issuer: ISSUER,
      clientId: 'ledgerline',
      clientSecret: 'ledgerline-secret',
      authorization: { params: { scope: 'openid profile fund.read target:b' } },
      checks: ['pkce', 'state', 'nonce'],
    },
  ],
  callbacks: {
    jwt: ({ token, account }) => ({ ...token, ...(account && { accessToken: account.access_token }) }),
    session: ({ session, token }) => ({ ...session, accessToken: token.accessToken }),
  },
  secret: 'a long random text',
  trustHost: true,
}

express()
  .use('/auth', ExpressAuth(config))
  .get('/', async (request, response) => {
    const session = await getSession(request, config)
    const answer = await fetch(FUNDS, { headers: { Authorization: `Bearer ${session.accessToken}` } })
    response.json({ name: session.user.name, funds: await answer.json() })
  })
  .listen(Number(PORT), '127.0.0.1')
