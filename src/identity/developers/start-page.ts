import type { ApiDescription, OperationDescription } from '../../contracts/api-description.ts'
import { contactLink, html, type Html } from '../pages/layout.ts'
import { codeFlow } from './code-flow.ts'
import { curlCommand, keepToken } from './curl.ts'
import { bullets, codeBlock, facts, paragraph, paragraphs, part, prose, proseTable } from './elements.ts'
import type { DeveloperPage } from './frame.ts'
import { addressOf, type DeveloperParts } from './parts.ts'
import { filledPath, leastScopes, type Login, loginOf, tokenCall } from './sample-calls.ts'
import { START_TEXTS as T, timeText } from './texts/start.ts'

/** The first page: from nothing to a call that is answered. */
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

/** What the token endpoint answers, its token shortened. */
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
