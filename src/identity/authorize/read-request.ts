/** Reads an authorization request, and refuses what cannot be granted to anybody (C6.2.1). */
import { Buffer } from 'node:buffer'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Form } from '../../base/http/body/form.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { orUnavailable } from '../dependencies/dependencies.ts'
import type { Arrived, ClientAuthenticated, Step, StepDependencies } from '../steps/endpoint.ts'
import { withResource } from '../dependencies/resource.ts'
import { hasValue, limitToClient, parseScope } from '../dependencies/scopes.ts'
import { formParameters, readFields, readQueryFields } from '../steps/read-form.ts'
import { readChallenge } from '../stored/codes.ts'
import { returnPathOf } from './answer-client.ts'
import { queryOfCarried, SWITCH } from './carry.ts'
import { isRegistered } from './redirect-uri.ts'
import {
  type AuthorizationRead,
  type AuthorizationRequest,
  type ClientNamed,
  type FormRead,
  isMode,
  onlyValue,
  type Prompt,
  PROMPTS,
} from './request.ts'

/** The query is the request for any method, as in the forms of our own pages. */
export const readQuery: Step<Arrived, FormRead> = (context) => ({
  ...context,
  form: readQueryFields(context.exchange),
  posted: false,
})

/** The parameters are in the query of a GET, and in the body of a POST (OIDC Core §3.1.2.1). */
export const readAuthorization: Step<Arrived, FormRead> = async (context, dependencies) =>
  context.exchange.head.method === 'POST'
    ? { ...context, form: await readFields(context.exchange), posted: true }
    : readQuery(context, dependencies)

/** A page, never a redirect, answers an unknown client or a bad redirect_uri, repeated ones too (C6.2.1, C6.0). */
export const nameClient: Step<FormRead, ClientNamed> = async (context, dependencies) => {
  const id = onlyValue(context.form, 'client_id')
  const namedClient = id === undefined ? undefined : await orUnavailable(dependencies.people.findClient(id))
  if (namedClient === undefined) throw new Fault('authorize_bad_client')
  context.attempt.client = namedClient.id
  const read = await readReferenced(context, namedClient, dependencies)
  return { ...read, namedClient, redirectUri: redirectUriOf(read.form, namedClient) }
}

/** @throws Fault `authorize_bad_redirect` if there is none that the client has registered */
function redirectUriOf(form: Form, client: Client): string {
  const redirectUri = onlyValue(form, 'redirect_uri')
  if (redirectUri === undefined || !isRegistered(redirectUri, client.redirectUris, client))
    throw new Fault('authorize_bad_redirect')
  return redirectUri
}

/** Parameters that our own pages add to a request: the notice, and the state of the business picker. */
const OF_PAGES: readonly string[] = ['notice', 'find', 'from', SWITCH]

/**
 * Reads a request that the browser refers to: of the query only `client_id` and `request_uri` count then.
 * @throws Fault `invalid_request_uri`, which is answered by a page
 */
async function readReferenced(
  context: FormRead,
  { id }: Client,
  { cookie, security }: StepDependencies,
): Promise<FormRead> {
  const { exchange, form } = context
  const uris = (form.get('request_uri') ?? []).filter((each) => each !== '')
  if (uris.length === 0) return context
  const reference = await security.findRequest(uris, id, cookie.read(exchange.head))
  if (reference === undefined) return context
  const switching = form.has(SWITCH) ? { prompt: 'login', login_hint: '' } : {}
  const asked = formOf({ ...reference.params, ...switching, client_id: id })
  const ofPages = OF_PAGES.map((name) => [name, form.get(name) ?? []] as const)
  return { ...context, form: new Map([...asked, ...ofPages]), reference }
}

const formOf = (params: Readonly<Record<string, string>>): Form =>
  new Map(Object.entries(params).map(([name, value]) => [name, [value]]))

const refuse = (say: string): Fault => new Fault('oauth_bad_request', { say })

/** A request that is too large is answered by a page, because a redirect could not carry it either (C6.2.1). */
export const requireFit: Step<ClientNamed, ClientNamed> = (context, { longestTarget }) => {
  const { form, reference } = context
  if (reference !== undefined) return context
  const query = queryOfCarried((name) => onlyValue(form, name))
  checkRequestSize(query, onlyValue(form, 'state'), longestTarget)
  return context
}

/** The longest text of a client's own that is stored, shown or sent back, in bytes of UTF-8 (C6.2.1). */
const LONGEST_TEXT = 2048

/** Room in the addresses of our own pages for their path and an added prompt, in characters. */
const OWN_PART = 256

/**
 * Refuses what the addresses of our own pages could not carry, before a person has typed anything (C6.2.1, C6.3.3).
 * @param query what they carry, encoded
 * @param longestTarget characters
 * @throws Fault `oauth_bad_request`
 */
export function checkRequestSize(query: string, state: string | undefined, longestTarget: number): void {
  checkLength('state', state)
  const most = longestTarget - OWN_PART
  if (query.length > most)
    throw refuse(
      `The parameters have ${query.length} characters when they are percent-encoded, and at most ${most} are allowed: shorten state, nonce or id_token_hint.`,
    )
}

function checkLength(name: string, text: string | undefined): void {
  if (Buffer.byteLength(text ?? '') > LONGEST_TEXT)
    throw refuse(`The ${name} is longer than ${LONGEST_TEXT} bytes.`)
}

type Params = ReadonlyMap<string, string>

function checkKind(params: Params, { grants }: Client): void {
  if (params.has('request')) throw new Fault('request_not_supported')
  if (params.has('request_uri')) throw new Fault('request_uri_not_supported')
  const responseType = params.get('response_type')
  if (responseType === undefined) throw refuse('The parameter response_type is missing.')
  if (responseType !== 'code') throw new Fault('unsupported_response_type')
  const mode = params.get('response_mode')
  if (mode !== undefined && !isMode(mode)) throw refuse('The response_mode must be query or form_post.')
  if (!grants.includes('authorization_code')) throw new Fault('unauthorized_client')
}

const isPrompt = (text: string): text is Prompt => PROMPTS.some((prompt) => prompt === text)

function readPrompt(params: Params): ReadonlySet<Prompt> {
  const words = (params.get('prompt') ?? '').split(' ').filter((word) => word !== '')
  const prompt = new Set(words.filter(isPrompt))
  if (words.some((word) => !isPrompt(word))) throw refuse('The prompt must be none, login or consent.')
  if (prompt.has('none') && prompt.size > 1) throw refuse('The prompt none stands alone.')
  return prompt
}

function readNonce(params: Params, { limits }: Client): string | undefined {
  const nonce = params.get('nonce')
  checkLength('nonce', nonce)
  if (limits !== undefined && nonce !== undefined && nonce.length > limits.nonceLength)
    throw refuse(`The nonce is longer than ${limits.nonceLength} characters.`)
  return nonce
}

function readLoginHint(params: Params): string | undefined {
  const hint = params.get('login_hint')
  checkLength('login_hint', hint)
  return hint
}

function readMaxAge(params: Params): number | undefined {
  const text = params.get('max_age')
  if (text !== undefined && !/^[0-9]{1,9}$/.test(text))
    throw refuse('The max_age must be a number of seconds.')
  return text === undefined ? undefined : Number(text)
}

/** Makes all checks of a request that do not need the user (C6.2.1). */
export const readRequest: Step<ClientNamed, AuthorizationRead> = (context, dependencies) => {
  dependencies.security.checkRequest(context.namedClient, context.reference)
  return checkRequest(context, dependencies)
}

const checkRequest: Step<ClientNamed, AuthorizationRead> = async (context, dependencies) => {
  const { catalogue, places, security } = dependencies
  const { namedClient, form, reference } = context
  const params = formParameters(form)
  checkKind(params, namedClient)
  const text = params.get('scope')?.trim() ?? namedClient.defaultScope
  if (text === undefined) throw new Fault('invalid_scope', { say: 'The parameter scope is missing.' })
  const parsed = parseScope(text, catalogue, true)
  const asked = await withResource(parsed, params.get('resource'), namedClient, dependencies)
  const request: AuthorizationRequest = {
    namedClient,
    back: returnPathOf(context),
    challenge: readChallenge(params, hasValue(asked, 'openid'), namedClient),
    jkt: security.keyOf(params),
    prompt: readPrompt(params),
    maxAge: readMaxAge(params),
    scope: await limitToClient(asked, namedClient, catalogue, places),
    nonce: readNonce(params, namedClient),
    loginHint: readLoginHint(params),
    idTokenHint: params.get('id_token_hint'),
    params,
    reference,
    loggedIn: reference?.loggedIn === true && !params.has(SWITCH),
  }
  return { ...context, request }
}

/** Makes all checks of a request that comes from its client, and not by a browser. */
export async function checkSentRequest(
  context: ClientAuthenticated,
  params: Params,
  dependencies: StepDependencies,
): Promise<void> {
  const { client } = context
  checkLength('state', params.get('state'))
  const form = formOf(Object.fromEntries(params))
  const redirectUri = redirectUriOf(form, client)
  await checkRequest({ ...context, form, posted: true, namedClient: client, redirectUri }, dependencies)
}
