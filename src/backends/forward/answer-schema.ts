/** The keys of forwarding backends that say what their upstream answers (C8.4, C8.6). An operation may say them too. */
import { choice, list, text } from '../../config/schema.ts'

export const answerKeys = {
  format: choice(['json', 'xml'], { default: 'json', description: 'Format that the service speaks.' }),
  payload: choice(['bare', 'envelope'], {
    default: 'bare',
    description: 'Whether the service answers the data alone, or in an envelope of `Errors` and `Data`.',
  }),
  responseHeaders: list(text({ description: 'A header’s name.' }), {
    default: [],
    description: 'Further response headers that reach the client, such as `Location` or `Cache-Control`.',
  }),
}
