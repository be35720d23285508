import { parseForm, singleValues, type Form } from '../../http/form.ts'

/**
 * The parameters of all identity endpoints, and the fields of our own forms: those that an error may name. A name that
 * is not among them is the client's own, and never told back (see `parseForm`).
 */
const PARAMETERS: ReadonlySet<string> = new Set([
  // the token endpoint (C6.1)
  'grant_type',
  'client_id',
  'client_secret',
  'scope',
  'username',
  'password',
  'code',
  'redirect_uri',
  'code_verifier',
  'refresh_token',
  // revocation, introspection (C6.3.3)
  'token',
  'token_type_hint',
  // authorize (C6.2.1)
  'response_type',
  'response_mode',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'prompt',
  'max_age',
  'login_hint',
  'id_token_hint',
  'request',
  'request_uri',
  // logout
  'post_logout_redirect_uri',
  'logout_hint',
  // our own pages
  'csrf',
  'decision',
  'business',
  'withdraw',
  'end',
  'done',
])

/** A form or query of an identity endpoint as sent, repeats and all. Throws Fault body_malformed. */
export const readParameters = (text: string | Uint8Array): Form => parseForm(text, { known: PARAMETERS })

/** Each parameter once (C6.0). Throws Fault oauth_bad_request. */
export const paramsOf = (form: Form): ReadonlyMap<string, string> => singleValues(form, PARAMETERS)
