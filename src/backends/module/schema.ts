import { duration, list, opaque, optional, path, section, text, type Static } from '../../config/schema.ts'

export const moduleSchema = section(
  {
    file: optional(
      path({ description: 'TypeScript or JavaScript file whose default export makes the backend.' }),
    ),
    package: optional(
      text({ description: 'Instead of `file`: a JavaScript package, installed where Postern is started.' }),
    ),
    options: opaque<unknown>({
      default: {},
      description: 'Passed to the module as written. `{ env: … }` and `{ file: … }` are not resolved.',
    }),
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
