/** Ends tokens, sessions, codes and families, at once and permanently (C6.3.3). */
import {
  type AuditedChange,
  causeOf,
  type Operator,
  plainFacts,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import type { Ended, RevokedTokens } from '../../base/contracts/records/tokens.ts'
import type { IssuerConfig } from '../../identity/keys/issuers/issuers-schema.ts'
import type { ServiceContext } from '../operation/context.ts'
import {
  commandLine,
  count,
  members,
  type Members,
  notFound,
  ok,
  type AdminOperation,
  problemsSchema,
  reject,
  textSchema,
  WHO,
  flagSchema,
} from '../operation/operation.ts'
import { countOf, countOfFamilies } from '../operation/terminal.ts'
import { type Options, UsageError } from '../operation/verb.ts'

/** The combinations of members that a revocation may name. */
const REVOCATIONS = [
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
  jti: textSchema('The `jti` of one access token: it is ended.'),
  family: textSchema('A family of refresh tokens: it is ended, with its code and its access tokens.'),
  subject: textSchema('The `sub` of a user: sessions, families, codes and access tokens are ended.'),
  client: textSchema('A client id: its families, codes and access tokens are ended.'),
  business: textSchema('A business code: families, codes and access tokens for it are ended.'),
}

const ISSUER = textSchema(
  'In a sidecar: only tokens of this issuer, by its name or its `iss`. Required with several issuers for a `jti`, a subject or a client.',
)

const OPTIONS: Members = {
  preview: flagSchema('Tell what would be ended; change nothing.'),
  consents: flagSchema('End consents too; they stay otherwise.'),
  force: flagSchema('Make the rule also where an id is not known.'),
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

/** Which tokens are revoked. */
const RULE_OPTIONS = {
  before: {
    type: 'string',
    value: 'now',
    help: 'Everything that was given until now: after a backup was restored. Everybody logs in again',
  },
  jti: { type: 'string', value: 'ID', help: 'One access token' },
  family: {
    type: 'string',
    value: 'ID',
    help: 'A family of refresh tokens, with its authorization code and its access tokens',
  },
  subject: { type: 'string', value: 'SUBJECT', help: 'A user: sessions, families, codes and access tokens' },
  client: { type: 'string', value: 'ID', help: 'A client: families, codes and access tokens' },
  business: { type: 'string', value: 'CODE', help: 'A business: families, codes and access tokens' },
} as const satisfies Options

/** How they are revoked. */
const HOW_OPTIONS = {
  issuer: {
    type: 'string',
    value: 'NAME',
    help: 'In a sidecar with several issuers: the issuer that the id is of, by its name or URL',
  },
  consents: { type: 'boolean', help: 'End consents too. Without it, they stay' },
  preview: { type: 'boolean', help: 'Show what would be revoked, and change nothing' },
  force: { type: 'boolean', help: 'Also if an id is not known. Without it, that is refused: exit code 1' },
} as const satisfies Options

const RULES = Object.keys(RULE_OPTIONS) as (keyof typeof RULE_OPTIONS)[]
const REVOKED = [...RULES, ...(Object.keys(HOW_OPTIONS) as (keyof typeof HOW_OPTIONS)[])]

interface Revoked {
  readonly outcome: 'revoked' | 'previewed'
  readonly sessions: number
  readonly families: number
  readonly codes: number
  readonly consents: number
}

function revokedText({ outcome, sessions, families, codes, consents }: Revoked): string {
  const list = [
    countOf(sessions, 'session'),
    countOfFamilies(families),
    countOf(codes, 'code'),
    countOf(consents, 'consent'),
  ].join(', ')
  return outcome === 'revoked'
    ? `revoked: ${list}, and the access tokens\n`
    : `would be revoked: ${list}, and the access tokens. Nothing was changed.\n`
}

export interface RevokeOptions {
  /** Count what would be ended, change nothing. */
  readonly preview: boolean
  /** End consents too. */
  readonly consents: boolean
  /** Make the rule even if an id is not known. */
  readonly force: boolean
}

type RevokeOutcome =
  | { readonly outcome: 'revoked' | 'previewed'; readonly ended: Ended }
  | { readonly outcome: 'unknown'; readonly problems: readonly string[] }

type NamedIssuer = Pick<IssuerConfig, 'issuer' | 'name'>

/** The same rule with the `iss` of the issuer in place of its name. One that is not configured stays as it is. */
function withIss(tokens: RevokedTokens, issuers: readonly NamedIssuer[]): RevokedTokens {
  if (tokens.issuer === undefined) return tokens
  const found = issuers.find(({ issuer, name }) => issuer === tokens.issuer || name === tokens.issuer)
  return { ...tokens, issuer: found?.issuer ?? tokens.issuer }
}

/** The record is about what the revocation rule names. */
const revocationOf = (
  { subject, client, business, ...one }: Partial<Record<string, string>>,
  { consents, force }: RevokeOptions,
): AuditedChange => ({
  event: 'revocation.ordered',
  on: { kind: 'tokens', subject, client, business },
  change: plainFacts({ ...one, withConsents: consents, force }),
})

/**
 * Revokes tokens, sessions, codes and families. If an id is not known, nothing changes and `problems` has a line for each
 * such id. Rejects with Fault `identity_unavailable` if the store failed; a part may be done then.
 */
export async function revoke(
  service: ServiceContext,
  named: RevokedTokens,
  options: RevokeOptions,
  operator: Operator,
): Promise<RevokeOutcome> {
  const { tokenRevoker, audit, recorder } = service
  const tokens = withIss(named, service.configuration().issuers)
  if (!options.force) {
    // Only here: commands need no schema of the store.
    const { unknownIds } = await import('./unknown-ids.ts')
    const problems = await unknownIds(tokens, service)
    if (problems.length > 0) return { outcome: 'unknown', problems }
  }
  if (options.preview) return { outcome: 'previewed', ended: await tokenRevoker.preview(tokens, options) }
  const end = (): Promise<Ended> => tokenRevoker.end(tokens, { ...options, cause: causeOf(operator) })
  const ended = await recordTaking(audit, operator, revocationOf(tokens, options), end, plainFacts)
  recorder.note('info', 'tokens_revoked', { rule: tokens, ...ended, ...operator })
  return { outcome: 'revoked', ended }
}

const REVOKE: AdminOperation = {
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
  handle: async (service, { body, operator }) => {
    const tokens = readRevocation(body)
    if (tokens === undefined)
      return reject([`expected one of: ${REVOCATIONS.map((row) => row.join(' + ')).join('; ')}`])
    const preview = body['preview'] === true
    const options = { preview, consents: body['consents'] === true, force: body['force'] === true }
    const answer = await revoke(service, tokens, options, operator)
    if (answer.outcome === 'unknown')
      return notFound('nobody and nothing of that id is known', answer.problems)
    return ok({ outcome: answer.outcome, ...answer.ended })
  },
  commands: [
    commandLine({
      words: ['revoke'],
      summary: 'End sessions, refresh tokens, codes and access tokens, at once and for good',
      notes: ['With several of --subject, --client and --business, only what matches all of them.'],
      arguments: [],
      options: { ...RULE_OPTIONS, ...HOW_OPTIONS },
      examples: [
        { line: 'postern revoke --client acme-books --preview', does: 'show how much there is' },
        {
          line: "postern revoke --subject 45733adb-9b07-4d40-ae57-20cf9b802f51 --reason 'lost laptop'",
          does: 'end all that a user has',
        },
        { line: "postern revoke --before now --reason 'backup restored'", does: 'end all that anybody has' },
      ],
      input: ({ values }) => {
        if (RULES.every((name) => values[name] === undefined))
          throw new UsageError(
            `expected one of ${RULES.map((name) => `--${name}`).join(', ')}, to say what is revoked`,
          )
        if (values.before !== undefined && values.before !== 'now')
          throw new UsageError(`--before: expected now, got "${values.before}"`)
        return { body: Object.fromEntries(REVOKED.map((name) => [name, values[name]])) }
      },
      text: revokedText,
    }),
  ],
}

export const REVOKE_OPERATIONS: readonly AdminOperation[] = [REVOKE]
