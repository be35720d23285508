/** Secrets of clients: previewed and recorded before they are shown, then stored, and replaced by another one (C12.1.7). */
import type { Written } from '../../identity/directory/editors/editing.ts'
import { planSecret } from '../../identity/directory/editors/client.ts'
import { shownForm, showRecord } from '../../identity/directory/editors/record-forms.ts'
import { keyOfNames, type RecordKind } from '../../identity/directory/editors/record-kind.ts'
import type { AuditedChange } from '../../base/contracts/records/audited-change.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { DURATION_PATTERN, parseDuration } from '../../base/kernel/units.ts'
import type { OperationContext } from '../operation/context.ts'
import { AdminError } from '../operation/errors.ts'
import {
  type AdminRequest,
  type Members,
  members,
  ok,
  problemsSchema,
  type Schema,
  type SharedOperation,
  textSchema,
  WHO,
} from '../operation/operation.ts'
import { rotateSecretLine } from './record-lines.ts'
import { MISSING, onOne, operation } from './record-operation.ts'
import { meantOf, recordPath, shownSchema } from './record-schemas.ts'
import { changeOf, doLatest, doRecorded } from './recorded-step.ts'

/** An order that may bring a secret: what it gives, and whether that is to be stored, or only previewed. */
export interface SecretOptions {
  /** The record that the order gives. */
  readonly given: Written
  /** Default: another one is drawn. */
  readonly secret?: string | undefined
  /** Any value: nothing is stored. `recorded`: it is recorded that it is about to be stored, by the intent that is returned. */
  readonly preview?: string | undefined
  /** The intent of such a preview. */
  readonly intent?: string | undefined
}

/** A secret that the caller has drawn, and has shown already. */
const GIVEN_SECRET = textSchema(
  'A secret of your own, in place of one that is drawn: 43 or more characters of base64url.',
  {
    pattern: '^[A-Za-z0-9_-]{43,}$',
  },
)
const IS_SECRET = /^[A-Za-z0-9_-]{43,1000}$/

export const PREVIEW: Members = {
  preview: {
    enum: ['true', 'false', 'recorded', 'withdrawn'],
    description:
      'Tell what would be stored; change nothing. `recorded`: record also that it is about to be stored, so that a secret of your own can be shown before it is in force. `withdrawn`: what was recorded so is not done.',
  },
  intent: textSchema(
    'That of a preview that was recorded in the minute before: nothing else has to be recorded before the secret is stored.',
  ),
}

export const INTENT = textSchema('Of a preview that was recorded: to be named when it is stored.')

/** The options of an order. What it withdraws is closed. Rejects with AdminError 400 if it brings something that is no secret. */
export async function secretOptionsOf(
  { intents }: OperationContext,
  { body, query }: AdminRequest,
): Promise<SecretOptions> {
  const { preview = 'false', intent } = query
  if (preview === 'withdrawn' && intent !== undefined) await intents.withdraw(intent)
  const { secret: brought, ...given } = body
  const secret = typeof brought === 'string' && IS_SECRET.test(brought) ? brought : undefined
  if (brought !== undefined && secret === undefined)
    throw new AdminError(400, 'the request does not fit', [
      'body.secret  expected 43 or more characters of base64url',
    ])
  return { given, secret, preview: preview === 'false' ? undefined : preview, intent }
}

export const withSecret = ({ properties, ...schema }: Schema): Schema => ({
  ...schema,
  properties: { ...properties, secret: GIVEN_SECRET },
})

/** How long an old secret stays valid by default. */
const OVERLAP = '1d'

export const rotateSecret = (client: RecordKind): SharedOperation =>
  operation(
    {
      method: 'POST',
      path: `${recordPath(client)}/secrets`,
      operationId: 'rotateSecret',
      ...onOne(client),
      query: { ...WHO, ...PREVIEW },
      summary: 'Make another secret of a client in the store; the old one stays valid for a time',
      body: members({
        overlap: textSchema(
          `How long the old secret stays valid, such as \`12h\`; \`0s\`: not at all. Default: ${OVERLAP}.`,
          { pattern: DURATION_PATTERN },
        ),
        secret: GIVEN_SECRET,
      }),
      bodyOptional: true,
      answers: {
        200: [
          'Made, valid everywhere; of a preview, what would be, without a secret',
          members({
            record: shownSchema(client),
            secret: textSchema('It is shown only now.'),
            intent: INTENT,
          }),
          ['ETag'],
        ],
        404: MISSING,
        409: ['It is public, stands in the configuration, or has two secrets', problemsSchema],
      },
      commands: [rotateSecretLine(client)],
    },
    async (context, request) => {
      const meant = meantOf(client, request)
      const { at, operator } = meant
      const { overlap: given } = request.body
      const overlap = parseDuration(typeof given === 'string' ? given : OVERLAP)
      const { preview, intent, secret: brought } = await secretOptionsOf(context, request)
      const editors = await context.editors()
      // The same, however often the step is planned.
      const secret = brought ?? newSecret()
      const plan = () => planSecret(editors.client, keyOfNames(at.names), overlap, secret)
      const change = { ...changeOf(at, 'secret_rotated'), change: { overlapMs: overlap } }
      if (preview !== undefined) {
        const { unshown } = await plan()
        const begun = preview === 'recorded' ? await context.intents.begin(change, operator) : undefined
        return ok({ record: shownForm(client, unshown.client), intent: begun })
      }
      // With an intent, one record is for all attempts.
      const rotate = (recordedAs: AuditedChange | undefined) =>
        doLatest(context, meant, { plan, gives: () => true, change: () => recordedAs })
      const { result } = await (intent === undefined
        ? rotate(change)
        : doRecorded(context, operator, change, () => rotate(undefined), { gives: true, intent }))
      const { record, tag } = showRecord(client, await editors.client.show(keyOfNames(at.names)))
      return { ...ok({ record, secret: result }), tag }
    },
  )
