/** The keys of forwarding backends that say what an upstream is sent (C8.2, C8.7). An operation may say them too. */
import { flag, list, optional, text, wholeNumber } from '../../config/schema.ts'
import { authSchema } from './auth/schema.ts'

export const requestKeys = {
  path: optional(
    text({
      description: 'Path to send instead of the client’s, such as `/v2/{business}/{action}`.',
    }),
  ),
  forwardAuthorization: flag({
    default: false,
    description: 'Forward the client’s `Authorization` header. A 401 of the service then reaches the client.',
  }),
  auth: optional(authSchema),
  requestHeaders: optional(
    list(text({ description: 'A header’s name.' }), {
      unique: true,
      description:
        'The only headers of the client to forward. Default: all but those that state who calls or from where.',
    }),
  ),
  retries: wholeNumber({
    default: 1,
    minimum: 0,
    maximum: 5,
    description:
      'How often a GET, HEAD or OPTIONS without a body is sent again after a failure of the target.',
  }),
}
