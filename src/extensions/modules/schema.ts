import { moduleKeys } from '../../base/config/modules/import-file.ts'
import { duration, list, name, optional, section, type Static, text } from '../../base/config/schema.ts'

export const moduleSchema = section(
  {
    ...moduleKeys('the backend'),
    over: optional(
      name({
        description:
          'The backend of kind `http` or `stream` that it runs around: it changes requests and answers, or makes several requests.',
      }),
    ),
    timeout: duration({
      default: '30s',
      description: 'How long the module may take until its answer begins. After that, the client gets 503.',
    }),
    idle: duration({
      default: '1m',
      description: 'Longest time between two pieces of a stream. After that, the client is cut off.',
    }),
    responseHeaders: list(text({ description: 'A header’s name.' }), {
      default: [],
      description: 'Further headers of its answers that reach the client, such as `Location`.',
    }),
  },
  { description: 'Code of your own: a file or a package.' },
)

export type ModuleConfig = Static<typeof moduleSchema>
