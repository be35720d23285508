/** What an authorization request is, from the form that a browser brings to what may be granted (C6.2.1). */
import type { Client } from '../../base/contracts/people/people.ts'
import type { Form } from '../../base/http/body/form.ts'
import type { Arrived } from '../steps/endpoint.ts'
import type { RequestedScope } from '../dependencies/scopes.ts'
import type { ReferencedRequest } from '../dependencies/client-security.ts'

export interface FormRead extends Arrived {
  readonly form: Form
  /** It came in a body: a form of the client's, so that a SameSite cookie did not come along. */
  readonly posted: boolean
  /** Where `form` has the parameters of a request that the browser refers to. */
  readonly reference?: ReferencedRequest
}

/** Named, not proven: a browser proves nothing about a client. From here on errors are redirected to it. */
export interface ClientNamed extends FormRead {
  readonly namedClient: Client
  readonly redirectUri: string
}

export const RESPONSE_MODES = ['query', 'form_post'] as const

type ResponseMode = (typeof RESPONSE_MODES)[number]

/** How a client is answered (C6.2.1). */
export interface ReturnPath {
  readonly client: string
  readonly redirectUri: string
  readonly state: string | undefined
  readonly mode: ResponseMode
}

export const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const

export type Prompt = (typeof PROMPTS)[number]

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
  /** How old the user's login may be, in seconds. */
  readonly maxAge: number | undefined
  readonly loginHint: string | undefined
  readonly idTokenHint: string | undefined
  /** For the pages' forms to bring back. */
  readonly params: ReadonlyMap<string, string>
  /** If the browser refers to it, the pages carry its URI in place of its parameters. */
  readonly reference: ReferencedRequest | undefined
  /** Whether somebody has logged in for it already: then it asks for no further login. */
  readonly loggedIn: boolean
}

export interface AuthorizationRead extends ClientNamed {
  readonly request: AuthorizationRequest
}

export const isMode = (text: string | undefined): text is ResponseMode =>
  RESPONSE_MODES.some((mode) => mode === text)

/** The only value of a parameter; undefined where it is absent, empty or repeated. */
export function onlyValue(form: Form, name: string): string | undefined {
  const [value, second] = (form.get(name) ?? []).filter((each) => each !== '')
  return second === undefined ? value : undefined
}
