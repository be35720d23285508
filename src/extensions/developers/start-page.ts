import { contactLink, html, type Html } from '../../identity/pages/layout.ts'
import { timeText } from '../../identity/pages/texts.ts'
import {
  curlCommand,
  filledPath,
  keepToken,
  leastScopes,
  type FilledLogin,
  loginOf,
  tokenCall,
} from './commands.ts'
import { type ApiDocument, type DocumentedOperation, plain } from './document.ts'
import { type CodeExample, codeBlock, facts, inJson } from './elements.ts'
import { addressOf, type DeveloperPage, type DeveloperParts } from './frame.ts'
import { readGuide, type GuideValues } from './guide.ts'
import { paragraph } from './markdown.ts'

/** How a client gets a token, and calls with it. */
export function startPage(parts: DeveloperParts): DeveloperPage {
  const guide = readGuide('start')
  return {
    path: '',
    name: guide.title,
    content: () => {
      const { description, title } = parts.document().info
      const values = { ...firstCall(parts), ...codeFlow(parts), ...refresh(parts) }
      const body = html`${guide.parts({ addresses: addresses(parts), ...values })}`
      return { title, lead: plain(description), body }
    },
  }
}

const code = (text: string): Html => html`<code>${text}</code>`

function addresses(parts: DeveloperParts): Html {
  const { document, openapiUrl } = parts
  const { baseUrl, info } = document()
  const contact = info.contact.url ?? info.contact.email
  const rows: [string, Html][] = [
    ['Address of the API', code(`${baseUrl}/api/1.0`)],
    ['Token endpoint', code(addressOf(parts, 'token_endpoint'))],
    ['Login page for users', code(addressOf(parts, 'authorization_endpoint'))],
    ['Metadata for OAuth libraries', code(`${addressOf(parts, 'issuer')}/.well-known/openid-configuration`)],
  ]
  if (openapiUrl !== undefined)
    rows.push(['OpenAPI document', html`<a href="${openapiUrl}">${openapiUrl}</a>`])
  if (contact !== undefined) rows.push(['Help', contactLink(contact)])
  return facts(rows)
}

/** An operation that needs nothing but a place: to be called first. */
const simplest = ({ operations }: ApiDocument, login: FilledLogin): DocumentedOperation | undefined =>
  operations.find(
    (operation) =>
      operation.method === 'GET' &&
      operation.answer.data !== undefined &&
      operation.parametersIn('path').length === operation.places &&
      (operation.places === 1 || login.fund !== ''),
  )

function firstCall(parts: DeveloperParts): GuideValues {
  const { catalogue, sample } = parts
  const document = parts.document()
  const login = loginOf(sample)
  const operation = simplest(document, login)
  const scopes = operation === undefined ? ['openid'] : leastScopes(operation, catalogue)
  return {
    before: paragraph(
      sample === undefined
        ? 'Before you copy these commands, replace the words in capital letters: `CLIENT_ID` and `CLIENT_SECRET` are what you got for your software, `USERNAME` and `PASSWORD` belong to one of your users, `BUSINESS` is the code of a business.'
        : 'These commands work as they stand. They use a client and a user that were made for trying the API. Copy them into a terminal, in this order.',
    ),
    token: keepToken(tokenCall(login, addressOf(parts, 'token_endpoint'), scopes)),
    tokenAnswer: tokenAnswer(parts, scopes, login),
    calls: operation === undefined ? askUser(parts) : callTwice(document, operation, login),
  }
}

/** The answer of the token endpoint, its token shortened. */
const tokenAnswer = (
  { identity }: DeveloperParts,
  scopes: readonly string[],
  login: FilledLogin,
): CodeExample =>
  inJson(
    JSON.stringify({
      access_token: 'eyJhbGciOiJFUzI1NiIs…',
      token_type: identity.strictRfc6749 ? 'Bearer' : 'bearer',
      expires_in: Math.floor(identity.accessToken.lifetime / 1000),
      scope: [...scopes, `target:b/${login.business}`].join(' '),
    }),
  )

const step = (title: string, command: CodeExample): Html =>
  html`<h3>${title}</h3>
    ${codeBlock(command, title)}`

function callTwice({ baseUrl }: ApiDocument, operation: DocumentedOperation, login: FilledLogin): Html {
  const call = { url: baseUrl + filledPath(operation, login), bearer: 'TOKEN' } as const
  const asXml = { ...call, headers: [['Accept', 'application/xml']] } as const
  return html`${step('2. Call the API', curlCommand(call))}
  ${step('3. Read the same answer as XML', curlCommand(asXml))}
  ${paragraph('Only the header `Accept` is different.')}`
}

const askUser = (parts: DeveloperParts): Html =>
  step(
    '2. Ask who is logged in',
    curlCommand({ url: addressOf(parts, 'userinfo_endpoint'), bearer: 'TOKEN' }),
  )

function refresh(parts: DeveloperParts): GuideValues {
  const { accessToken, refreshToken } = parts.identity
  return {
    accessLifetime: timeText(accessToken.lifetime),
    loginLifetime: timeText(refreshToken.lifetime),
    refresh: tokenCommand(parts, [
      ['grant_type', 'refresh_token'],
      ['refresh_token', 'REFRESH_TOKEN'],
    ]),
    lostAnswer:
      refreshToken.grace === 0
        ? 'An old refresh token does not work again.'
        : `If an answer got lost, send the old one again within ${timeText(refreshToken.grace)}: you get the same new one.`,
  }
}

const tokenCommand = (parts: DeveloperParts, form: readonly (readonly [string, string])[]): CodeExample =>
  curlCommand({ url: addressOf(parts, 'token_endpoint'), user: 'CLIENT_ID:CLIENT_SECRET', form })

/** RFC 7636 §4.1, §4.2: 64 characters, and the hash of them. */
const PROOF = `VERIFIER=$(openssl rand -base64 48 | tr '+/' '-_' | tr -d '\\n')
CHALLENGE=$(printf %s "$VERIFIER" | openssl dgst -sha256 -binary | openssl base64 | tr '+/' '-_' | tr -d '=\\n')
STATE=$(openssl rand -hex 16)`

const REDIRECT_URI = 'https://your-app.example/callback'

/** One line a parameter; to be joined before it is used. */
const urlOf = (...lines: readonly string[]): CodeExample => ({ kind: 'URL', text: lines.join('\n  &') })

/** The code flow with the addresses of this deployment (C6.2). */
function codeFlow(parts: DeveloperParts): GuideValues {
  const [scope = ''] = parts.document().scopes
  const asked = ['openid', 'offline_access', scope, 'target:b'].filter(Boolean).join(' ')
  const issuer = addressOf(parts, 'issuer')
  return {
    proof: { kind: 'Shell', text: PROOF },
    authorize: urlOf(
      `${addressOf(parts, 'authorization_endpoint')}?response_type=code`,
      'client_id=CLIENT_ID',
      `redirect_uri=${encodeURIComponent(REDIRECT_URI)}`,
      `scope=${encodeURIComponent(asked)}`,
      'state=STATE',
      'code_challenge=CHALLENGE',
      'code_challenge_method=S256',
    ),
    issuer,
    returned: urlOf(`${REDIRECT_URI}?code=CODE`, 'state=STATE', `iss=${encodeURIComponent(issuer)}`),
    codeLifetime: timeText(parts.identity.code.lifetime),
    redeem: tokenCommand(parts, [
      ['grant_type', 'authorization_code'],
      ['code', 'CODE'],
      ['redirect_uri', REDIRECT_URI],
      ['code_verifier', 'VERIFIER'],
    ]),
  }
}
