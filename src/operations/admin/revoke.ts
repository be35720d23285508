/** The admin API's route for revocation (C6.3.3). */
import type { RevokedTokens } from '../../contracts/tokens.ts'
import {
  count,
  members,
  notFound,
  ok,
  problemsSchema,
  reject,
  text,
  WHO,
  type AdminRoute,
  type Members,
} from './routes.ts'

/** The combinations of members that a revocation may name. */
export const REVOCATIONS = [
  ['jti'],
  ['family'],
  ['subject'],
  ['client'],
  ['business'],
  ['client', 'subject'],
  ['client', 'business'],
  ['subject', 'business'],
  ['client', 'subject', 'business'],
] as const

const REVOCABLE = {
  jti: text('The `jti` of one access token: it is ended.'),
  family: text('A family of refresh tokens: it is ended, with its code and its access tokens.'),
  subject: text('The `sub` of a user: sessions, families, codes and access tokens are ended.'),
  client: text('A client id: its families, codes and access tokens are ended.'),
  business: text('A business code: families, codes and access tokens for it are ended.'),
}

const OPTIONS: Members = {
  preview: { type: 'boolean', description: 'Tell what would be ended; change nothing.' },
  consents: { type: 'boolean', description: 'End consents too; they stay otherwise.' },
  force: { type: 'boolean', description: 'Make the rule also where an id is not known.' },
}

const ENDED = {
  sessions: count('Logins in browsers.'),
  families: count('Families of refresh tokens.'),
  codes: count('Authorization codes; used ones too, which are kept so that a second use is noticed.'),
  consents: count('0 unless `consents` is asked for.'),
}

function readRevocation(body: Readonly<Record<string, unknown>>): RevokedTokens | undefined {
  const named = Object.keys(REVOCABLE).filter((key) => body[key] !== undefined)
  const fits = REVOCATIONS.some(
    (row) => row.length === named.length && named.every((key) => row.some((word) => word === key)),
  )
  return fits ? (Object.fromEntries(named.map((key) => [key, body[key]])) as RevokedTokens) : undefined
}

export const REVOKE_ROUTE: AdminRoute = {
  method: 'POST',
  path: '/revoke',
  operationId: 'revoke',
  summary:
    'End what is held, at once and for good: one token, one family, all of a user, client or business, or what several of the latter have in common',
  body: members({ ...REVOCABLE, ...OPTIONS, ...WHO }),
  answers: {
    200: [
      'Ended in this process; everywhere within a second. How many of each that the store held; access tokens are ended too, and nobody counts them',
      members({ outcome: { enum: ['revoked', 'previewed'] }, ...ENDED }, ['outcome', ...Object.keys(ENDED)]),
    ],
    404: ['An id that is not known, and no `force`: nothing has changed', problemsSchema],
  },
  handle: async (room, { body, operator }) => {
    const tokens = readRevocation(body)
    if (tokens === undefined)
      return reject([`expected one of: ${REVOCATIONS.map((row) => row.join(' + ')).join('; ')}`])
    const preview = body['preview'] === true
    const options = { preview, consents: body['consents'] === true, force: body['force'] === true }
    const answer = await room.revoke(tokens, options, operator)
    if (answer.outcome === 'unknown')
      return notFound('nobody and nothing of that id is known', answer.problems)
    return ok({ outcome: answer.outcome, ...answer.ended })
  },
}
