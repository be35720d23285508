/** The admin API's route that issues a test token (C11.5.7). */
import {
  type AdminAnswer,
  type Operation,
  count,
  members,
  ok,
  problemsSchema,
  refuse,
  text,
  WHO,
} from './operation.ts'
import type { TestTokenOutcome } from './test-token-orders.ts'

const body = members(
  {
    user: text('The name or the subject of the user.'),
    client: text('The id of the client. Default: the first one that is granted such a token.'),
    target: text('The target of the token, such as `b/ACME` or `f/ACME/SUPER1`. Default: that of the scope.'),
    scope: text(
      'What is asked for. Default: the default scope of the client, else all that the client may have.',
    ),
    ...WHO,
  },
  ['user'],
)

const issuedSchema = members(
  {
    token: text('The access token. It is neither logged nor stored, and no refresh token comes with it.'),
    id: text('Its `jti`, as the audit trail names it, and as `revoke` takes it.'),
    expiresIn: count('Seconds until it expires: 900 at most.'),
    client: text('The client that it is for.'),
    subject: text('The `sub` of the user.'),
    scope: text('What was granted.'),
    target: text('Its target, such as `target:b/ACME`. Absent if it has none.'),
    business: text('The code of the business of its target.'),
    fund: text('The code of the fund of its target.'),
    dropped: {
      type: 'array',
      items: { type: 'string' },
      description: 'Values that were asked for and not granted.',
    },
    api: text('The URL of the API, which takes it.'),
  },
  ['token', 'id', 'expiresIn', 'client', 'subject', 'scope', 'dropped', 'api'],
)

function answerOf(answer: TestTokenOutcome): AdminAnswer {
  if (answer.outcome === 'closed') return refuse('this service issues no test tokens', [answer.why])
  if (answer.outcome === 'refused')
    return refuse('no such token can be had', [`${answer.reason}  ${answer.why}`])
  return ok(answer.issued)
}

export const TEST_TOKEN_ROUTE: Operation = {
  method: 'POST',
  path: '/test-tokens',
  operationId: 'issueTestToken',
  needs: 'administer',
  summary:
    'Issue a test token: what a client and a user would be granted, without their secrets; only by a service on loopback',
  body,
  answers: {
    200: ['The token, recorded with the operator', issuedSchema],
    409: [
      'The client and the user would be granted none; or the service is not on loopback, or is a sidecar',
      problemsSchema,
    ],
  },
  handle: async ({ testTokens }, { body: sent, operator }) => {
    const said = (name: string): string | undefined => {
      const value = sent[name]
      return typeof value === 'string' ? value : undefined
    }
    const wish = {
      client: said('client'),
      user: said('user') ?? '',
      target: said('target'),
      scope: said('scope'),
    }
    return answerOf(await testTokens.issue(wish, operator))
  },
}
