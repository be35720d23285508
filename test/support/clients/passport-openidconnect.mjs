import express from 'express'
import session from 'express-session'
import passport from 'passport'
import OpenIDConnectStrategy from 'passport-openidconnect'

const { FUNDS, ISSUER, ORIGIN, PORT } = process.env

const metadata = await (await fetch(`${ISSUER}/.well-known/openid-configuration`)).json()
const strategy = new OpenIDConnectStrategy(
  {
    issuer: ISSUER,
    authorizationURL: metadata.authorization_endpoint,
    tokenURL: metadata.token_endpoint,
    userInfoURL: metadata.userinfo_endpoint,
    clientID: 'ledgerline',
    clientSecret: 'ledgerline-secret',
    callbackURL: `${ORIGIN}/callback`,
    scope: 'profile fund.read target:b',
    nonce: true,
  },
  (_issuer, profile, _context, _idToken, accessToken, _refreshToken, done) =>
    done(null, { name: profile.displayName, accessToken }),
)

passport.use(strategy)
const login = passport.authenticate('openidconnect', { session: false })
express()
  .use(session({ secret: 'a long random text', resave: false, saveUninitialized: false }))
  .get('/login', login)
  .get('/callback', login, async ({ user }, response) => {
    const answer = await fetch(FUNDS, { headers: { Authorization: `Bearer ${user.accessToken}` } })
    response.json({ name: user.name, funds: await answer.json() })
  })
  .listen(Number(PORT), '127.0.0.1')
