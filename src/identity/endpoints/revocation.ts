import type { Answer } from '../../contracts/exchange.ts'
import { Fault } from '../../kernel/faults.ts'
import { emptyAnswer } from '../answers.ts'
import type { ClientAuthenticated } from '../context.ts'
import type { StepDependencies, Step } from '../endpoint.ts'
import { noteCall } from '../note-call.ts'
import { requireParam } from '../steps/require-params.ts'
import { findToken, type FoundToken } from '../tokens/find-token.ts'

/**
 * C6.3.3, RFC 7009. A token that nobody knows is answered as one that was revoked; one of another client is not
 * (invalid_grant). Success is said only when the store has kept it (T3.7).
 */
export const revokeToken: Step<ClientAuthenticated, Answer> = async (context, room) => {
  const { attempt, client, exchange, params } = context
  const found = await findToken(requireParam(params, 'token'), room)
  if (found === undefined) return emptyAnswer()
  if (found.client !== client.id)
    throw new Fault('invalid_grant', { say: 'It was issued to another client.' })
  attempt.subject = found.subject
  await REVOKE[found.kind](found, room)
  const facts = { kind: found.kind, client: client.id, subject: found.subject }
  noteCall(exchange, room, 'info', 'token_revoked', facts)
  return emptyAnswer()
}

/** By kind of token. A refresh token ends its family and its access tokens; an access token is revoked alone. */
const REVOKE: Readonly<
  Record<FoundToken['kind'], (found: FoundToken, room: StepDependencies) => Promise<unknown>>
> = {
  refresh_token: ({ id }, { tokenRevoker }) => tokenRevoker.end({ family: id }),
  access_token: ({ id }, { tokenRevoker }) => tokenRevoker.end({ jti: id }),
}
