import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import { type Form, parseForm, singleValues } from '../../base/http/body/form.ts'
import { declaredBody, type Head } from '../../base/http/head/head.ts'
import { checkContentType } from '../../base/http/head/media-type.ts'
import { readBody } from '../../base/http/body/read-body.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { Arrived, Parsed, Step } from './endpoint.ts'

/** The parameters of an authorization request (C6.2.1), in the order in which our own pages carry them. */
export const AUTHORIZATION_PARAMETERS = [
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
] as const

/** Error texts may name these fields only: any other name is chosen by the sender (see `parseForm`). */
const PARAMETERS: ReadonlySet<string> = new Set([
  ...AUTHORIZATION_PARAMETERS,
  'request',
  'request_uri',
  // the token endpoint (C6.1)
  'grant_type',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'username',
  'password',
  'code',
  'code_verifier',
  'refresh_token',
  // revocation, introspection (C6.3.3)
  'token',
  'token_type_hint',
  // logout
  'post_logout_redirect_uri',
  'logout_hint',
  // our own pages
  'csrf',
  'decision',
  'business',
  'find',
  'from',
  'current',
  'again',
  'withdraw',
  'end',
  'everywhere',
  'done',
  'notice',
  'switch',
  'cookieless',
])

const readParameters = (text: string | Uint8Array): Form => parseForm(text, { known: PARAMETERS })

/** Reads the query of an identity endpoint, with repeated parameters. @throws Fault `body_malformed` */
export const readQueryFields = ({ target }: Exchange): Form =>
  readParameters(target instanceof Fault ? '' : target.query.slice(1))

/** A query with those of the parameters that have a value, in the order of `names`. */
export const encodedQuery = <N extends string>(
  names: readonly N[],
  valueOf: (name: N) => string | undefined,
): string =>
  new URLSearchParams(
    names.flatMap((name) => {
      const value = valueOf(name)
      return value === undefined ? [] : [[name, value]]
    }),
  ).toString()

/** The parameters with one value each (C6.0). @throws Fault `oauth_bad_request` for a repeated parameter, `invalid_target` for two resources */
export function formParameters(form: Form): ReadonlyMap<string, string> {
  // RFC 8707 lets it repeat, and a token has one target at most.
  if ((form.get('resource') ?? []).filter((value) => value !== '').length > 1)
    throw new Fault('invalid_target', { say: 'A token is for one resource at most.' })
  return singleValues(form, PARAMETERS)
}

/** The largest form that is read, in bytes: far more than any request of C6 needs. */
export const FORM_LIMIT = 64 * 1024

interface SizeRule {
  readonly most: number
  readonly tooLarge: () => Fault
}

const OF_FORMS: SizeRule = {
  most: FORM_LIMIT,
  tooLarge: () => new Fault('oauth_bad_request', { say: 'The body is too large.' }),
}

/** Checks the Content-Type and reads the form (C6.1.0, C6.0, C6.1.1). Every fault here is an `invalid_request`. */
export const formReader =
  (rule: SizeRule = OF_FORMS): Step<Arrived, Parsed> =>
  async (context) => ({ ...context, params: formParameters(await readFields(context.exchange, rule)) })

export const readForm = formReader()

/**
 * Reads the fields of a posted form, with repeated ones.
 * @throws Fault `oauth_bad_request` for a wrong Content-Type, that of `rule` for a body that is too large; `body_malformed`
 */
export async function readFields({ head, body }: Exchange, rule: SizeRule = OF_FORMS): Promise<Form> {
  const declared = declaredBody(head)
  requireFormType(head, declared !== 0)
  if (typeof declared === 'number' && declared > rule.most) throw rule.tooLarge()
  const bytes = declared === 0 ? Buffer.alloc(0) : await readBytes(body, rule)
  return readParameters(bytes)
}

function requireFormType({ headers }: Head, hasBody: boolean): void {
  const contentType = headers['content-type']
  const contentEncoding = headers['content-encoding']
  try {
    checkContentType({ contentType: contentType ?? '', contentEncoding, hasBody }, ['form'])
  } catch (cause) {
    const say = 'The Content-Type must be application/x-www-form-urlencoded, in UTF-8 and not compressed.'
    throw new Fault('oauth_bad_request', { cause, say })
  }
}

async function readBytes(body: Readable, { most, tooLarge }: SizeRule): Promise<Buffer> {
  try {
    return await readBody(body, most)
  } catch (thrown) {
    throw toFault(thrown).code === 'body_too_large' ? tooLarge() : thrown
  }
}

/** A step that requires parameters. The error for a missing one names it (C6.1.4). */
export const requireParams =
  <C extends Parsed>(...names: readonly string[]): Step<C, C> =>
  (context) => {
    for (const name of names) requireParam(context.params, name)
    return context
  }

/**
 * The scope that a request asks for, or the client's default (C5.5).
 * @throws Fault `invalid_scope` if there is neither
 */
export function scopeParameter(params: ReadonlyMap<string, string>, { defaultScope }: Client): string {
  const sent = params.get('scope')?.trim()
  const text = sent === undefined || sent === '' ? defaultScope : sent
  if (text !== undefined) return text
  throw new Fault('invalid_scope', {
    say: 'The parameter scope is missing, and this client has no default.',
  })
}

/** @throws Fault `oauth_bad_request` if it is missing */
export function requireParam(params: ReadonlyMap<string, string>, name: string): string {
  const value = params.get(name)
  if (value === undefined) throw new Fault('oauth_bad_request', { say: `The parameter ${name} is missing.` })
  return value
}
