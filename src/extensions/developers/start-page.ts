import type { ApiDescription, OperationDescription } from '../../base/contracts/calls/api-description.ts'
import { contactLink, html, type Html } from '../../identity/pages/layout.ts'
import {
  curlCommand,
  filledPath,
  keepToken,
  leastScopes,
  type Login,
  loginOf,
  tokenCall,
} from './commands.ts'
import { bullets, codeBlock, facts, paragraph, paragraphs, part, prose, proseTable } from './elements.ts'
import { addressOf, type DeveloperPage, type DeveloperParts } from './frame.ts'
import { START_TEXTS as T, timeText } from './texts.ts'

export function startPage(parts: DeveloperParts): DeveloperPage {
  const { api } = parts
  return {
    path: '',
    title: api.title,
    lead: api.description ?? T.lead,
    body: () =>
      html`${whatItIs(parts)} ${firstCall(parts)}
      ${part('kinds', T.kinds, paragraph(T.kindsText), proseTable(T.kinds, T.kindHeads, T.kindRows))}
      ${targets()} ${codeFlow(parts)} ${refresh(parts)}
      ${part('good', T.good, bullets(T.goodRules.map(prose)))}`,
  }
}

const code = (text: string): Html => html`<code>${text}</code>`

function whatItIs(parts: DeveloperParts): Html {
  const { api, contact, openapiUrl } = parts
  const T2 = T.addresses
  const rows: [string, Html][] = [
    [T2.api, code(`${api.baseUrl}/api/1.0`)],
    [T2.token, code(addressOf(parts, 'token_endpoint'))],
    [T2.authorize, code(addressOf(parts, 'authorization_endpoint'))],
    [T2.metadata, code(`${addressOf(parts, 'issuer')}/.well-known/openid-configuration`)],
  ]
  if (openapiUrl !== undefined) rows.push([T2.openapi, html`<a href="${openapiUrl}">${openapiUrl}</a>`])
  if (contact !== undefined) rows.push([T2.help, contactLink(contact)])
  return part('what', T.what, paragraphs(T.whatText), facts(rows))
}

/** An operation that needs nothing but a place: to be called first. */
const simplest = ({ areas }: ApiDescription, login: Login): OperationDescription | undefined =>
  areas
    .flatMap(({ operations }) => operations)
    .filter(({ answer, method }) => method === 'GET' && answer.kind === 'envelope')
    .find(
      ({ level, parameters }) =>
        parameters.every(({ kind }) => kind !== 'own') && (level === 'business' || login.fund !== ''),
    )

function firstCall(parts: DeveloperParts): Html {
  const { api, catalogue, sample } = parts
  const login = loginOf(sample)
  const operation = simplest(api, login)
  const scopes = operation === undefined ? ['openid'] : leastScopes(operation, catalogue)
  const token = keepToken(tokenCall(login, addressOf(parts, 'token_endpoint'), scopes))
  return part(
    'first-call',
    T.first,
    paragraph(sample === undefined ? T.firstOwn : T.firstSample),
    html`<h3>${T.stepToken}</h3>`,
    codeBlock('Shell', T.stepToken, token),
    paragraph(T.stepTokenText),
    paragraph(T.answerOfToken),
    codeBlock('JSON', T.answerOfToken, tokenAnswer(parts, scopes, login)),
    paragraph(T.tokenScope),
    operation === undefined ? askUser(parts) : callTwice(api, operation, login),
  )
}

/** The answer of the token endpoint, its token shortened. */
const tokenAnswer = ({ identity }: DeveloperParts, scopes: readonly string[], login: Login): string =>
  JSON.stringify(
    {
      access_token: 'eyJhbGciOiJFUzI1NiIs…',
      token_type: identity.strictRfc6749 ? 'Bearer' : 'bearer',
      expires_in: Math.floor(identity.accessToken.lifetime / 1000),
      scope: [...scopes, `target:b/${login.business}`].join(' '),
    },
    null,
    2,
  )

function callTwice(api: ApiDescription, operation: OperationDescription, login: Login): Html {
  const call = { url: api.baseUrl + filledPath(operation, login), bearer: 'TOKEN' } as const
  const asXml = { ...call, headers: [['Accept', 'application/xml']] } as const
  return html`<h3>${T.stepCall}</h3>
    ${codeBlock('Shell', T.stepCall, curlCommand(call))}
    <h3>${T.stepXml}</h3>
    ${codeBlock('Shell', T.stepXml, curlCommand(asXml))} ${paragraph(T.stepXmlText)}`
}

const askUser = (parts: DeveloperParts): Html =>
  html`<h3>${T.stepUser}</h3>
    ${codeBlock('Shell', T.stepUser, curlCommand({ url: addressOf(parts, 'userinfo_endpoint'), bearer: 'TOKEN' }))}`

const targets = (): Html =>
  part(
    'targets',
    T.targets,
    paragraphs(T.targetsText),
    proseTable(T.targets, T.targetHeads, T.targetRows),
    bullets(T.targetsRules.map(prose)),
  )

function refresh(parts: DeveloperParts): Html {
  const { accessToken, refreshToken } = parts.identity
  const grace = refreshToken.grace === 0 ? undefined : timeText(refreshToken.grace)
  const command = curlCommand({
    url: addressOf(parts, 'token_endpoint'),
    user: 'CLIENT_ID:CLIENT_SECRET',
    form: [
      ['grant_type', 'refresh_token'],
      ['refresh_token', 'REFRESH_TOKEN'],
    ],
  })
  return part(
    'refresh',
    T.refresh,
    paragraphs(T.refreshText(timeText(accessToken.lifetime), timeText(refreshToken.lifetime))),
    codeBlock('Shell', T.refresh, command),
    bullets(T.refreshRules(grace).map(prose)),
  )
}

const STEPS = T.codeSteps

/** RFC 7636 §4.1, §4.2: 64 characters, and the hash of them. */
const PROOF = `VERIFIER=$(openssl rand -base64 48 | tr '+/' '-_' | tr -d '\\n')
CHALLENGE=$(printf %s "$VERIFIER" | openssl dgst -sha256 -binary | openssl base64 | tr '+/' '-_' | tr -d '=\\n')
STATE=$(openssl rand -hex 16)`

const REDIRECT_URI = 'https://your-app.example/callback'

/** One line a parameter; to be joined before it is used. */
const authorizeUrl = (endpoint: string, scope: string): string =>
  [
    `${endpoint}?response_type=code`,
    'client_id=CLIENT_ID',
    `redirect_uri=${encodeURIComponent(REDIRECT_URI)}`,
    `scope=${encodeURIComponent(scope)}`,
    'state=STATE',
    'code_challenge=CHALLENGE',
    'code_challenge_method=S256',
  ].join('\n  &')

const returnUrl = (issuer: string): string =>
  [`${REDIRECT_URI}?code=CODE`, 'state=STATE', `iss=${encodeURIComponent(issuer)}`].join('\n  &')

const step = (title: string, text: string, ...more: readonly Html[]): Html =>
  html`<li>
    <h3>${title}</h3>
    ${paragraph(text)} ${more}
  </li>`

/** The code flow with the addresses of this deployment (C6.2). */
function codeFlow(parts: DeveloperParts): Html {
  const [scope = ''] = parts.api.scopes.map(({ name }) => name)
  const asked = ['openid', 'offline_access', scope, 'target:b'].filter(Boolean).join(' ')
  const issuer = addressOf(parts, 'issuer')
  const redeem = curlCommand({
    url: addressOf(parts, 'token_endpoint'),
    user: 'CLIENT_ID:CLIENT_SECRET',
    form: [
      ['grant_type', 'authorization_code'],
      ['code', 'CODE'],
      ['redirect_uri', REDIRECT_URI],
      ['code_verifier', 'VERIFIER'],
    ],
  })
  const sent = authorizeUrl(addressOf(parts, 'authorization_endpoint'), asked)
  return part(
    'code-flow',
    T.code,
    paragraph(T.codeText),
    html`<ol class="steps">
      ${step(STEPS.proof, STEPS.proofText, codeBlock('Shell', STEPS.proof, PROOF))}
      ${step(STEPS.send, STEPS.sendText, codeBlock('URL', STEPS.send, sent))}
      ${step(STEPS.back, STEPS.backText(issuer), codeBlock('URL', STEPS.back, returnUrl(issuer)))}
      ${step(
        STEPS.redeem,
        STEPS.redeemText(timeText(parts.identity.code.lifetime)),
        codeBlock('Shell', STEPS.redeem, redeem),
      )}
      <li>
        <h3>${STEPS.call}</h3>
        <p>${prose(STEPS.callText)}</p>
      </li>
    </ol>`,
  )
}
