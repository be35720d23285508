/** A link by which a user of the store sets a password: made by an operator, shown once (C6.3.7, C11.5.1). */
import type { Editors } from '../../identity/directory/editors/editors.ts'
import { linkableUser } from '../../identity/directory/editors/user.ts'
import type { RecordKind } from '../../identity/directory/editors/record-kind.ts'
import type { UserRecord } from '../../identity/directory/records/schema.ts'
import { drawPasswordLink } from '../../identity/stored/password-links.ts'
import { DirectoryRefusal } from '../../identity/directory/editors/editing.ts'
import { DAY_MS, DURATION_PATTERN, instantText, parseDuration } from '../../base/kernel/units.ts'
import { AdminError } from '../operation/errors.ts'
import {
  commandLine,
  type CommandLine,
  type CommandSession,
  members,
  problemsSchema,
  type SharedOperation,
  textSchema,
  WHO,
} from '../operation/operation.ts'
import { type Options, UsageError } from '../operation/verb.ts'
import { MISSING, operation } from './record-operation.ts'
import { atOf, paramsOf, recordPath } from './record-schemas.ts'
import { changeOf, doRecorded } from './recorded-step.ts'

const LIFETIME = { least: DAY_MS / 24, usual: DAY_MS, most: 7 * DAY_MS } as const

export const LINK_OPTIONS = {
  for: { type: 'string', kind: 'duration', help: 'How long the link is good: 1h to 7d. Default: 24h' },
} as const satisfies Options

const EXPECTED = 'expected a duration from 1h to 7d'

const fits = (lifetime: number): boolean => lifetime >= LIFETIME.least && lifetime <= LIFETIME.most

/** @throws AdminError 400 if it is too short or too long */
function lifetimeIn(body: Readonly<Record<string, unknown>>): number {
  const given = body['for']
  const lifetime = typeof given === 'string' ? parseDuration(given) : LIFETIME.usual
  if (fits(lifetime)) return lifetime
  throw new AdminError(400, 'the request does not fit', [`body.for  ${EXPECTED}`])
}

/** Stores a new link. It is given out only if nobody was faster with another password, or with disabling the user. */
async function openLink(user: UserRecord, lifetime: number, { user: editor }: Editors) {
  const link = drawPasswordLink(user, lifetime, editor.parts)
  await link.open()
  try {
    if (!link.isFor(await linkableUser(editor, user.username)))
      throw new DirectoryRefusal(`"${user.username}" is being changed by somebody else; try again`)
    return link
  } catch (thrown) {
    await link.withdraw()
    throw thrown
  }
}

export interface MadeLink {
  readonly link: string
  readonly expiresAt: string
}

export const linkUser = (user: RecordKind): SharedOperation =>
  operation(
    {
      method: 'POST',
      path: `${recordPath(user)}/link`,
      operationId: 'linkUser',
      params: paramsOf(user.names),
      query: WHO,
      summary: 'Make a link by which a user of the store sets a password, once; the one before it ends',
      body: members({
        for: textSchema('How long it is good: `1h` to `7d`. Default: 24h.', { pattern: DURATION_PATTERN }),
      }),
      bodyOptional: true,
      answers: {
        201: [
          'Made; good everywhere',
          members(
            {
              link: textSchema('It is shown only now: whoever has it can set the password.'),
              expiresAt: textSchema('When it ends, if nobody uses it.', { format: 'date-time' }),
            },
            ['link', 'expiresAt'],
          ),
        ],
        404: MISSING,
        409: [
          'The configuration or a module has the user, or the user is disabled or locked',
          problemsSchema,
        ],
      },
      commands: [linkLine(user)],
    },
    async (context, request) => {
      const at = atOf(user, request)
      const lifetime = lifetimeIn(request.body)
      const editors = await context.editors()
      const linked = await linkableUser(editors.user, at.names.join('/'))
      const change = { ...changeOf(at, 'link_made', linked.subject), change: { forMs: lifetime } }
      const made = () => openLink(linked, lifetime, editors)
      const { code, expiresAt } = await doRecorded(context, request.operator, change, made, { gives: true })
      const body: MadeLink = {
        link: `${context.authUrl()}/connect/link?code=${code}`,
        expiresAt: instantText(expiresAt) ?? '',
      }
      return { status: 201, body }
    },
  )

/** Prints a new link, alone, so that it can be piped on. */
export function showLink(
  username: string,
  made: MadeLink,
  session: Pick<CommandSession, 'show' | 'terminal'>,
): void {
  session.show({ username, ...made }, () => `${made.link}\n`)
  session.terminal.stderr.write(
    `Good once, until ${made.expiresAt}. It is shown only now: whoever has it can set the password of ${username}.\n`,
  )
}

const linkLine = (kind: RecordKind): CommandLine =>
  commandLine({
    words: ['user link'],
    summary: 'Make a link by which a user of the store sets a password, once. The link before it ends',
    arguments: [{ name: 'USERNAME' }],
    options: LINK_OPTIONS,
    examples: [
      { line: `postern user link ${kind.texts.samples.name}`, does: 'for who has forgotten the password' },
      { line: `postern user link ${kind.texts.samples.name} --for 7d`, does: 'one that is good for a week' },
    ],
    run: async (session) => {
      const [username = ''] = session.positionals
      const made = await session.send<MadeLink>(session.operation, linkInput(username, session.values.for))
      showLink(username, made, session)
      return 0
    },
  })

/** @param duration how long it is good; undefined: the usual time. @throws UsageError if it is too short or too long */
export function linkInput(username: string, duration: string | undefined) {
  if (duration !== undefined && !fits(parseDuration(duration))) throw new UsageError(`--for  ${EXPECTED}`)
  return { params: { username }, body: duration === undefined ? {} : { for: duration } }
}
