/** The secret of a client in orders: of the caller's own, previewed, and recorded before it is shown. */
import type { Written } from '../../identity/directory/editors/nouns.ts'
import type { OperationContext } from '../operation/context.ts'
import { AdminError } from '../operation/errors.ts'
import { type AdminRequest, type Members, type Schema, textSchema } from '../operation/operation.ts'
import type { SecretOptions } from './record-changes.ts'

/** A secret that the caller has drawn, and has shown already. */
export const GIVEN_SECRET = textSchema(
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

/** What an order gives: a record, a secret of the caller's own, whether it is a preview, an intent. What is withdrawn is closed. */
export async function secretOptionsOf(
  { intents }: OperationContext,
  request: AdminRequest,
): Promise<SecretOptions & { readonly given: Written; readonly isPreview: boolean }> {
  const { preview = 'false', intent } = request.query
  if (preview === 'withdrawn' && intent !== undefined) await intents.withdraw(intent)
  const isPreview = preview !== 'false'
  const { secret, ...given } = broughtSecret(request)
  return {
    given,
    secret,
    isPreview,
    preview: isPreview ? (preview === 'recorded' ? 'recorded' : 'true') : undefined,
    intent,
  }
}

export const withSecret = ({ properties, ...schema }: Schema): Schema => ({
  ...schema,
  properties: { ...properties, secret: GIVEN_SECRET },
})

/** The body with the secret that it brings. Throws AdminError 400 if that is no secret. */
function broughtSecret({
  body,
}: AdminRequest): Readonly<Record<string, unknown>> & { readonly secret?: string } {
  const { secret, ...rest } = body
  if (secret === undefined) return rest
  if (typeof secret === 'string' && IS_SECRET.test(secret)) return { ...rest, secret }
  throw new AdminError(400, 'the request does not fit', [
    'body.secret  expected 43 or more characters of base64url',
  ])
}
