import { refuseAsJson, refuseAsPage, refuseWithChallenge } from './steps/answers.ts'
import { type Endpoint, flow } from './steps/endpoint.ts'
import { account, leadToAccount } from './endpoints/account.ts'
import { authorize, consent } from './endpoints/authorize.ts'
import {
  answerJwks,
  answerMetadata,
  answerResource,
  logo,
  RESOURCE_PATH,
  stylesheet,
} from './endpoints/documents.ts'
import { endSession } from './endpoints/end-session.ts'
import { link } from './endpoints/link.ts'
import { login } from './endpoints/login.ts'
import {
  introspectToken,
  issueTokens,
  recordTokens,
  redeemGrant,
  requireConfidential,
  revokeToken,
} from './endpoints/tokens.ts'
import { chooseGrant } from './grants/grants.ts'
import { ACCOUNT_PATH } from './pages/account.ts'
import { LOGO_PATH, STYLESHEET_PATH } from './pages/theme.ts'
import { recordRefusals } from './steps/records.ts'
import { authenticateClient, proveKey, useUpCredentials } from './steps/authenticate-client.ts'
import { readForm } from './steps/read-form.ts'

const below = (path: string) => (issuerPath: string) => `${issuerPath}${path}`
/** A well-known path, which comes before the issuer's path (RFC 8414 §3.1). */
const inserted = (path: string) => (issuerPath: string) => `${path}${issuerPath}`

const READ = ['GET', 'HEAD'] as const
const POST = ['POST'] as const

const PAGE = { methods: ['GET', 'POST'], closes: true, refuse: refuseAsPage } as const
/** Files that pages show, and addresses that lead to a page. */
const PAGE_PART = { methods: READ, closes: false, refuse: refuseAsPage } as const
const DOCUMENT = { methods: READ, closes: false, crossOrigin: true, refuse: refuseAsJson } as const

/** Every identity endpoint (C6) and its steps, in order. The discovery document is made from this table. */
export const ENDPOINTS: readonly Endpoint[] = [
  {
    name: 'authorize',
    path: below('/connect/authorize'),
    methods: ['GET', 'HEAD', 'POST'],
    closes: true,
    steps: authorize,
    refuse: refuseAsPage,
    announcedAs: 'authorization_endpoint',
  },
  {
    name: 'token',
    path: below('/connect/token'),
    methods: POST,
    closes: true,
    crossOrigin: true,
    steps: recordTokens(
      recordRefusals(
        'token.refused',
        flow(
          readForm,
          authenticateClient,
          proveKey('token'),
          useUpCredentials,
          chooseGrant,
          redeemGrant,
          issueTokens,
        ),
      ),
    ),
    refuse: refuseAsJson,
    announcedAs: 'token_endpoint',
    authenticates: 'all',
  },
  {
    name: 'revocation',
    path: below('/connect/revocation'),
    methods: POST,
    closes: true,
    crossOrigin: true,
    steps: recordRefusals('token.revoked', flow(readForm, authenticateClient, useUpCredentials, revokeToken)),
    refuse: refuseWithChallenge,
    announcedAs: 'revocation_endpoint',
    authenticates: 'all',
  },
  {
    name: 'introspection',
    path: below('/connect/introspect'),
    methods: POST,
    closes: true,
    steps: flow(readForm, authenticateClient, requireConfidential, useUpCredentials, introspectToken),
    refuse: refuseWithChallenge,
    announcedAs: 'introspection_endpoint',
    authenticates: 'confidential',
  },
  {
    name: 'endsession',
    path: below('/connect/endsession'),
    ...PAGE,
    steps: endSession,
    announcedAs: 'end_session_endpoint',
  },
  {
    name: 'login',
    path: below('/connect/login'),
    ...PAGE,
    steps: login,
  },
  {
    name: 'consent',
    path: below('/connect/consent'),
    ...PAGE,
    steps: consent,
  },
  {
    name: 'link',
    path: below('/connect/link'),
    ...PAGE,
    steps: link,
  },
  {
    name: 'account',
    path: below(ACCOUNT_PATH),
    ...PAGE,
    steps: account,
  },
  {
    name: 'applications',
    // Where the page was before.
    path: below('/connect/applications'),
    ...PAGE,
    steps: leadToAccount,
  },
  {
    name: 'change-password',
    // Browsers and password managers ask for it at the root of the host (W3C, A Well-Known URL for Changing Passwords).
    path: () => '/.well-known/change-password',
    ...PAGE_PART,
    steps: leadToAccount,
  },
  {
    name: 'stylesheet',
    path: below(STYLESHEET_PATH),
    ...PAGE_PART,
    steps: stylesheet,
  },
  {
    name: 'logo',
    path: below(LOGO_PATH),
    ...PAGE_PART,
    steps: logo,
  },
  {
    name: 'keys',
    path: below('/.well-known/jwks.json'),
    ...DOCUMENT,
    steps: answerJwks,
    announcedAs: 'jwks_uri',
  },
  {
    name: 'oauth-protected-resource',
    // It describes the API, so it is at the root of the API's host (RFC 9728 §3.1). Those of businesses are found by their form.
    path: () => RESOURCE_PATH,
    ...DOCUMENT,
    steps: answerResource,
  },
  {
    name: 'openid-configuration',
    path: below('/.well-known/openid-configuration'),
    ...DOCUMENT,
    steps: answerMetadata,
  },
  {
    name: 'oauth-authorization-server',
    path: inserted('/.well-known/oauth-authorization-server'),
    ...DOCUMENT,
    steps: answerMetadata,
  },
]
