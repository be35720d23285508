import type { Answer } from '../../contracts/exchange.ts'
import { Fault } from '../../kernel/faults.ts'
import { privateAnswer } from '../answers.ts'
import type { ClientAuthenticated } from '../context.ts'
import type { StepDependencies, Step } from '../endpoint.ts'
import { reach } from '../reach.ts'
import { requireParam } from '../steps/require-params.ts'
import { findToken, type FoundToken } from '../tokens/find-token.ts'

/** RFC 7662 §2.1 asks for authorization, and a public client cannot prove who it is. */
export const requireSecret: Step<ClientAuthenticated, ClientAuthenticated> = (context) => {
  if (context.client.kind === 'public') throw new Fault('invalid_client', { detail: 'a public client' })
  return context
}

/**
 * C6.3.3, RFC 7662. Whatever is not good, or not this client's to know, is `{"active": false}` and nothing more;
 * clients that are configured as resources may ask about everybody's tokens.
 */
export const introspectToken: Step<ClientAuthenticated, Answer> = async (context, room) => {
  const { client, params } = context
  const found = await findToken(requireParam(params, 'token'), room)
  const known = found !== undefined && (client.resource || found.client === client.id)
  return privateAnswer(known ? await describe(found, room) : INACTIVE, room)
}

const INACTIVE = { active: false }

/** A token whose user or client is gone or may hold none is no good, even before a revocation rule says so. */
async function describe(found: FoundToken, { people, urls }: StepDependencies): Promise<object> {
  const user = await reach(people.findUserBySubject(found.subject))
  const holder = await reach(people.findClient(found.client))
  if (found.spent || user === undefined || holder === undefined) return INACTIVE
  const { client, expiresAt, id, issuedAt, kind, scope, subject } = found
  return {
    active: true,
    scope,
    client_id: client,
    username: user.username,
    sub: subject,
    iss: urls.issuer,
    exp: expiresAt,
    // What only an access token has: a refresh token is for us alone, so it has no audience, and its id is a secret's.
    ...(kind === 'access_token' && { token_type: 'bearer', iat: issuedAt, aud: urls.api, jti: id }),
  }
}
