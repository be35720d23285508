import { Buffer } from 'node:buffer'
import type { Answer } from '../../contracts/exchange.ts'
import type { Client } from '../../contracts/people.ts'
import type { Form } from '../../http/form.ts'
import { Fault, toFault } from '../../kernel/faults.ts'
import { newSecret } from '../../kernel/ids.ts'
import { isLoopback } from '../../kernel/listen-address.ts'
import { describable } from '../answers.ts'
import { seeOther } from '../browser/browser-context.ts'
import { noteCall, orUnavailable } from '../dependencies.ts'
import type { Arrived, ClientAuthenticated, Step, StepDependencies } from '../endpoint.ts'
import { pageAnswer } from '../pages/layout.ts'
import { formPostPage } from '../pages/notices.ts'
import { withResource } from '../resource.ts'
import { hasValue, limitToClient, parseScope, type RequestedScope } from '../scopes.ts'
import { paramsOf, readFields, readParameters } from '../steps/read-form.ts'
import { readChallenge, readKeyBinding } from '../tokens/codes.ts'
import { isPushed, type PushedRequest } from './pushed-requests.ts'

interface FormRead extends Arrived {
  readonly form: Form
  /** It came in a body: a form of the client's, so that a SameSite cookie did not come along. */
  readonly posted: boolean
  /** The pushed request (C6.2.1a) whose parameters `form` has. */
  readonly pushed?: PushedRequest
}

/** Named, not proven: a browser proves nothing about a client. From here on errors are redirected to it. */
interface ClientNamed extends FormRead {
  readonly namedClient: Client
  readonly redirectUri: string
}

const RESPONSE_MODES = ['query', 'form_post'] as const

type ResponseMode = (typeof RESPONSE_MODES)[number]

/** How a client is answered (C6.2.1). */
interface ReturnPath {
  readonly client: string
  readonly redirectUri: string
  readonly state: string | undefined
  readonly mode: ResponseMode
}

const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const

type Prompt = (typeof PROMPTS)[number]

/** An authorization request that may be granted (C6.2.1). */
export interface AuthorizationRequest {
  readonly namedClient: Client
  readonly back: ReturnPath
  /** Within what the client may have; the business may be left to the user. */
  readonly scope: RequestedScope
  readonly nonce: string | undefined
  /** S256. */
  readonly challenge: string | undefined
  /** The thumbprint of the key that the code is bound to. */
  readonly jkt: string | undefined
  readonly prompt: ReadonlySet<Prompt>
  /** Seconds. */
  readonly maxAge: number | undefined
  readonly loginHint: string | undefined
  readonly idTokenHint: string | undefined
  /** For the pages' forms to bring back. */
  readonly params: ReadonlyMap<string, string>
  /** If it was pushed, the pages carry its URI in place of its parameters. */
  readonly pushed: PushedRequest | undefined
  /** Whether somebody has logged in for it already: then it asks for no further login. */
  readonly loggedIn: boolean
}

export interface AuthorizationRead extends ClientNamed {
  readonly request: AuthorizationRequest
}

const queryOf = ({ exchange }: Arrived): string =>
  exchange.target instanceof Fault ? '' : exchange.target.query.slice(1)

/** The query is the request, whatever the method: so in the forms of our own pages. */
export const readQuery: Step<Arrived, FormRead> = (context) => ({
  ...context,
  form: readParameters(queryOf(context)),
  posted: false,
})

/** OIDC Core §3.1.2.1: by GET in the query, by POST in the body. */
export const readAuthorization: Step<Arrived, FormRead> = async (context, dependencies) =>
  context.exchange.head.method === 'POST'
    ? { ...context, form: await readFields(context.exchange), posted: true }
    : readQuery(context, dependencies)

/** The only value of a parameter; undefined where it is absent, empty or repeated. */
export function onlyValue(form: Form, name: string): string | undefined {
  const [value, second] = (form.get(name) ?? []).filter((each) => each !== '')
  return second === undefined ? value : undefined
}

/** C6.2.1: an unknown client or a bad redirect_uri, repeated ones too (C6.0), is answered by a page, never by a redirect. */
export const nameClient: Step<FormRead, ClientNamed> = async (context, dependencies) => {
  const id = onlyValue(context.form, 'client_id')
  const namedClient = id === undefined ? undefined : await orUnavailable(dependencies.people.findClient(id))
  if (namedClient === undefined) throw new Fault('authorize_bad_client')
  context.attempt.client = namedClient.id
  const read = await readPushed(context, namedClient, dependencies)
  return { ...read, namedClient, redirectUri: redirectUriOf(read.form, namedClient) }
}

/** @throws Fault `authorize_bad_redirect` if there is none that the client has registered */
function redirectUriOf(form: Form, client: Client): string {
  const redirectUri = onlyValue(form, 'redirect_uri')
  if (redirectUri === undefined || !isRegistered(redirectUri, client.redirectUris, client))
    throw new Fault('authorize_bad_redirect')
  return redirectUri
}

/** The link to another account: the one wish of our own pages that a pushed request could not hold. */
const SWITCH = 'switch'

/** What our own pages add to a request: the notice, and what the business picker shows. */
const OF_PAGES: readonly string[] = ['notice', 'find', 'from', SWITCH]

/**
 * C6.2.1a: of a request that was pushed nothing else counts than its `client_id` and `request_uri`.
 * @throws Fault `invalid_request_uri`, which is answered by a page
 */
async function readPushed(
  context: FormRead,
  { id }: Client,
  { cookie, pushedRequests }: StepDependencies,
): Promise<FormRead> {
  const { exchange, form } = context
  const uris = (form.get('request_uri') ?? []).filter((each) => each !== '')
  const [uri = ''] = uris.filter(isPushed)
  if (uri === '') return context
  if (uris.length > 1) throw new Fault('invalid_request_uri', { detail: 'a second request_uri beside' })
  const pushed = await pushedRequests.find(uri, id, cookie.read(exchange.head))
  const switching = form.has(SWITCH) ? { prompt: 'login', login_hint: '' } : {}
  const asked = formOf({ ...pushed.params, ...switching, client_id: id })
  const ofPages = OF_PAGES.map((name) => [name, form.get(name) ?? []] as const)
  return { ...context, form: new Map([...asked, ...ofPages]), pushed }
}

const formOf = (params: Readonly<Record<string, string>>): Form =>
  new Map(Object.entries(params).map(([name, value]) => [name, [value]]))

/** RFC 8252 §7.3: an app's loopback redirect, by address and not by name; and its port. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::([1-9][0-9]{0,4}))?(?=[/?]|$)/

const withoutPort = (uri: string): string | undefined => {
  const [, host, port = '80'] = LOOPBACK.exec(uri) ?? []
  return host === undefined || Number(port) > 65_535 ? undefined : uri.replace(LOOPBACK, host)
}

/** C6.2.1: exactly the same characters (T6). Only the port of a native app may differ: it takes the one it gets. */
export function isRegistered(uri: string, registered: readonly string[], { kind }: Client): boolean {
  if (registered.includes(uri)) return true
  const bare = kind === 'public' ? withoutPort(uri) : undefined
  return bare !== undefined && registered.some((each) => withoutPort(each) === bare)
}

/**
 * RFC 8252 §8.6: whether any program on the person's device could have asked under this client's name, and take the
 * code: of a public client, by a loopback address, whatever its port, or by a scheme of the app's own.
 */
export function anyAppMayTake(uri: string, { kind }: Client): boolean {
  if (kind !== 'public') return false
  const { hostname, protocol } = new URL(uri)
  const host = hostname.replace(/^\[|\]$/g, '')
  return !/^https?:$/.test(protocol) || isLoopback(host) || host.endsWith('.localhost')
}

const isMode = (text: string | undefined): text is ResponseMode =>
  RESPONSE_MODES.some((mode) => mode === text)

const refuse = (say: string): Fault => new Fault('oauth_bad_request', { say })

/** How to answer the client, as far as the request can be read at all: errors about the rest need it too. */
function returnPathOf({ namedClient, form, redirectUri }: ClientNamed): ReturnPath {
  const mode = onlyValue(form, 'response_mode')
  const state = onlyValue(form, 'state')
  return { client: namedClient.name, redirectUri, state, mode: isMode(mode) ? mode : 'query' }
}

/** C6.2.1: answered by a page, since a redirect could not carry it either. */
export const requireFit: Step<ClientNamed, ClientNamed> = (context, { longestTarget }) => {
  const { form, pushed } = context
  if (pushed !== undefined) return context
  const query = queryOfCarried((name) => onlyValue(form, name))
  checkRequestSize(query, onlyValue(form, 'state'), longestTarget)
  return context
}

/** Bytes of UTF-8 that a client's own text may have, which is stored, shown or sent back (C6.2.1). */
const LONGEST_TEXT = 2048

/** Characters of the addresses of our own pages beside the request: their path, and a prompt that is added. */
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

/** Characters: FAPI 2.0 Security Profile §5.3.2.2 asks for as many, and no more are needed. */
const LONGEST_FAPI2_NONCE = 64

function readNonce(params: Params, { profile }: Client): string | undefined {
  const nonce = params.get('nonce')
  checkLength('nonce', nonce)
  if (profile === 'fapi2' && nonce !== undefined && nonce.length > LONGEST_FAPI2_NONCE)
    throw refuse(`The nonce is longer than ${LONGEST_FAPI2_NONCE} characters.`)
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

/** C6.2.1, all that can be said without knowing the user. */
export const readRequest: Step<ClientNamed, AuthorizationRead> = (context, dependencies) => {
  const { namedClient, pushed } = context
  if (namedClient.requirePar && pushed === undefined)
    throw refuse('This client must push its requests: send the browser with client_id and request_uri alone.')
  return checkRequest(context, dependencies)
}

const checkRequest: Step<ClientNamed, AuthorizationRead> = async (context, dependencies) => {
  const { catalogue, places } = dependencies
  const { namedClient, form } = context
  const params = paramsOf(form)
  checkKind(params, namedClient)
  const text = params.get('scope')?.trim() ?? namedClient.defaultScope
  if (text === undefined) throw new Fault('invalid_scope', { say: 'The parameter scope is missing.' })
  const parsed = parseScope(text, catalogue, true)
  const asked = await withResource(parsed, params.get('resource'), namedClient, dependencies)
  const request: AuthorizationRequest = {
    namedClient,
    back: returnPathOf(context),
    challenge: readChallenge(params, hasValue(asked, 'openid'), namedClient),
    jkt: readKeyBinding(params),
    prompt: readPrompt(params),
    maxAge: readMaxAge(params),
    scope: await limitToClient(asked, namedClient, catalogue, places),
    nonce: readNonce(params, namedClient),
    loginHint: readLoginHint(params),
    idTokenHint: params.get('id_token_hint'),
    params,
    pushed: context.pushed,
    loggedIn: context.pushed?.opening?.loggedIn === true && !params.has(SWITCH),
  }
  return { ...context, request }
}

/**
 * C6.2.1a: all checks of a request that its client pushes. They are made again when a browser opens it.
 * @returns the parameters to keep
 */
export async function checkPushed(
  context: ClientAuthenticated,
  dependencies: StepDependencies,
): Promise<ReadonlyMap<string, string>> {
  const { client, params } = context
  for (const name of ['request', 'request_uri'])
    if (params.has(name)) throw refuse(`The parameter ${name} cannot be pushed.`)
  checkLength('state', params.get('state'))
  const kept = PUSHED.flatMap((name) => {
    const value = params.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  const form = formOf(Object.fromEntries(kept))
  const redirectUri = redirectUriOf(form, client)
  await checkRequest({ ...context, form, posted: true, namedClient: client, redirectUri }, dependencies)
  return new Map(kept)
}

/** A registered URI may hold what a header can't. */
const inAscii = (uri: string): string => uri.replace(/[^\x21-\x7e]+/g, encodeURIComponent)

/** Adds to the query that the URI has, if it has one (RFC 6749 §3.1.2). */
export function withQuery(uri: string, params: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(params).toString()
  if (query === '') return inAscii(uri)
  const joint = uri.includes('?') ? (/[?&]$/.test(uri) ? '' : '&') : '?'
  return inAscii(uri) + joint + query
}

/** Sends the browser back to the client, with `iss` always and `state` if it was sent (RFC 9207, C6.2.1). */
export function answerClient(
  back: ReturnPath,
  result: Readonly<Record<string, string>>,
  dependencies: StepDependencies,
): Answer {
  const { client, mode, redirectUri, state } = back
  const params = { ...result, ...(state !== undefined && { state }), iss: dependencies.urls.issuer }
  if (mode === 'query') return seeOther(withQuery(redirectUri, params))
  return pageAnswer(dependencies.theme, formPostPage({ client, redirectUri, params, nonce: newSecret(16) }))
}

/** A refusal on its way to the client (RFC 6749 §4.1.2.1). */
function refuseByRedirect(fault: Fault, context: ClientNamed, dependencies: StepDependencies): Answer {
  const { attempt, exchange } = context
  const error = fault.row.oauth
  const { client, subject } = attempt
  noteCall(exchange, dependencies, 'info', 'authorization_refused', { client, subject, error })
  return answerClient(
    returnPathOf(context),
    { error, error_description: describable(fault.publicText) },
    dependencies,
  )
}

/**
 * Redirects what goes wrong in these steps to the client, whose redirect URI is known. A server error is redirected only with
 * `troublesToo`: a person at one of our pages reads of it on a page, and can try again.
 */
export const redirectingFaults =
  (steps: Step<ClientNamed, Answer>, troublesToo: boolean): Step<ClientNamed, Answer> =>
  async (context, dependencies) => {
    try {
      return await steps(context, dependencies)
    } catch (thrown) {
      const fault = toFault(thrown)
      if (fault.code === 'invalid_request_uri' || (fault.status >= 500 && !troublesToo)) throw fault
      await useUpRefused(fault, context, dependencies)
      context.attempt.redirectedFault = fault
      if (fault.row.level === 'error')
        noteCall(context.exchange, dependencies, 'error', 'authorization_failed', { cause: fault })
      return refuseByRedirect(fault, context, dependencies)
    }
  }

/** A person's refusal decides over a pushed request; so does ours to a person who is logged in. Looking at it does not. */
async function useUpRefused(
  { code, status }: Fault,
  { attempt, pushed }: ClientNamed,
  { pushedRequests }: StepDependencies,
): Promise<void> {
  if (pushed === undefined || status >= 500) return
  if (code === 'access_denied' || attempt.proven === 'user') await pushedRequests.useUp(pushed, [])
}

const CARRIED = [
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'resource',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'dpop_jkt',
  'prompt',
  'max_age',
  'login_hint',
  'id_token_hint',
  // Of our own: what the business picker shows.
  'find',
  'from',
] as const

type Carried = (typeof CARRIED)[number]

const OF_PICKER: ReadonlySet<Carried> = new Set(['find', 'from'])

/** `client_id` is known by the client's authentication. */
const PUSHED = CARRIED.filter((name) => name !== 'client_id' && !OF_PICKER.has(name))

/** The request as a query, for our own pages; `changes` replaces parameters, or takes them out. */
export function carry(
  { params, pushed }: AuthorizationRequest,
  changes: Readonly<Partial<Record<Carried, string | undefined>>> = {},
): string {
  const valueOf = (name: Carried): string | undefined => (name in changes ? changes[name] : params.get(name))
  if (pushed === undefined) return queryOfCarried(valueOf)
  const reference = new URLSearchParams({ client_id: pushed.client, request_uri: pushed.uri }).toString()
  const ofPages = queryOfCarried((name) => (OF_PICKER.has(name) ? valueOf(name) : undefined))
  return ofPages === '' ? reference : `${reference}&${ofPages}`
}

/** As `carry`, for a login by somebody else. */
export const carryToSwitch = (request: AuthorizationRequest): string =>
  request.pushed === undefined
    ? carry(request, { prompt: 'login', login_hint: undefined })
    : `${carry(request, { find: undefined, from: undefined })}&${SWITCH}=1`

function queryOfCarried(valueOf: (name: Carried) => string | undefined): string {
  const carried = CARRIED.flatMap((name) => {
    const value = valueOf(name)
    return value === undefined ? [] : [[name, value]]
  })
  return new URLSearchParams(carried).toString()
}

/** As `carry`, after the login: without the parameters that would ask for a login again. */
export function carryLoggedIn(request: AuthorizationRequest): string {
  const prompt = [...request.prompt].filter((word) => word === 'consent').join(' ')
  return carry(request, {
    prompt: prompt === '' ? undefined : prompt,
    max_age: undefined,
    id_token_hint: undefined,
    find: undefined,
    from: undefined,
  })
}
