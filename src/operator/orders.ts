/** Operations on the running service: reload, revocation, and what is doubted about its store. */
import { DOUBTED } from '../contracts/store.ts'
import type { RevokedTokens } from '../contracts/tokens.ts'
import {
  count,
  members,
  type Members,
  notFound,
  notNow,
  ok,
  type Operation,
  problemsSchema,
  refuse,
  reject,
  text,
  WHO,
} from './operation.ts'

/** The combinations of members that a revocation may name. */
export const REVOCATIONS = [
  ['before'],
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
  before: {
    const: 'now',
    description:
      'Everything that was given until now: all sessions, families, codes and access tokens are ended.',
  },
  jti: text('The `jti` of one access token: it is ended.'),
  family: text('A family of refresh tokens: it is ended, with its code and its access tokens.'),
  subject: text('The `sub` of a user: sessions, families, codes and access tokens are ended.'),
  client: text('A client id: its families, codes and access tokens are ended.'),
  business: text('A business code: families, codes and access tokens for it are ended.'),
}

const ISSUER = text(
  'In a sidecar: only tokens of this issuer, by its name or its `iss`. Required with several issuers for a `jti`, a subject or a client.',
)

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
  if (!fits) return undefined
  const members = body['issuer'] === undefined ? named : [...named, 'issuer']
  return Object.fromEntries(members.map((key) => [key, body[key]])) as unknown as RevokedTokens
}

export const REVOKE_ROUTE: Operation = {
  method: 'POST',
  path: '/revoke',
  operationId: 'revoke',
  needs: 'operate',
  summary:
    'End what is held, at once and for good: one token, one family, all of a user, client or business, what several of the latter have in common, or everything',
  body: members({ ...REVOCABLE, issuer: ISSUER, ...OPTIONS, ...WHO }),
  answers: {
    200: [
      'Ended in this process; everywhere within a second. How many of each that the store held; access tokens are ended too, and nobody counts them',
      members({ outcome: { enum: ['revoked', 'previewed'] }, ...ENDED }, ['outcome', ...Object.keys(ENDED)]),
    ],
    404: ['An id that is not known, and no `force`: nothing has changed', problemsSchema],
  },
  handle: async (control, { body, operator }) => {
    const tokens = readRevocation(body)
    if (tokens === undefined)
      return reject([`expected one of: ${REVOCATIONS.map((row) => row.join(' + ')).join('; ')}`])
    const preview = body['preview'] === true
    const options = { preview, consents: body['consents'] === true, force: body['force'] === true }
    const answer = await control.revoke(tokens, options, operator)
    if (answer.outcome === 'unknown')
      return notFound('nobody and nothing of that id is known', answer.problems)
    return ok({ outcome: answer.outcome, ...answer.ended })
  },
}

const whoOnly = members(WHO)

export const ORDER_ROUTES: readonly Operation[] = [
  {
    method: 'POST',
    path: '/reload',
    operationId: 'reload',
    needs: 'operate',
    summary:
      'Read the configuration anew: checked whole, then in force in every process at once, or not at all',
    body: whoOnly,
    bodyOptional: true,
    answers: {
      200: [
        'In force',
        members(
          {
            outcome: { const: 'reloaded' },
            warnings: { type: 'array', items: { type: 'string' } },
            revoked: count('Revocation rules made for who was removed from the directory.'),
          },
          ['outcome', 'warnings', 'revoked'],
        ),
      ],
      409: ['Refused: nothing has changed', problemsSchema],
    },
    handle: async (control, { operator }) => {
      const outcome = await control.reload(operator)
      if (outcome.outcome === 'reloaded') return ok(outcome)
      const refused = outcome.cause === 'trail' ? notNow : refuse
      return refused('the configuration was refused; nothing has changed', outcome.problems)
    },
  },
  REVOKE_ROUTE,
  {
    method: 'POST',
    path: '/store/accept',
    operationId: 'acceptStore',
    needs: 'operate',
    summary:
      'What every process doubts about a shared store is right: its clock, which has jumped, or its contents, which are older than what this node has seen',
    body: members({ what: { enum: [...DOUBTED], description: 'What is right.' }, ...WHO }, ['what']),
    answers: {
      200: [
        'In this process; everywhere within a second',
        members({ outcome: { const: 'accepted' }, what: { enum: [...DOUBTED] } }, ['outcome', 'what']),
      ],
      409: ['It is not doubted here: nothing has changed', problemsSchema],
    },
    handle: async (control, { body, operator }) => {
      const what = DOUBTED.find((each) => each === body['what'])
      if (what === undefined) return reject([`what  expected ${DOUBTED.join(' or ')}`])
      return (await control.acceptStore(what, operator))
        ? ok({ outcome: 'accepted', what })
        : refuse('nothing has changed', [`this node does not doubt the ${what} of the store`])
    },
  },
]
