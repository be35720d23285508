import { duration, list, opaque, optional, path, section, text, type Static } from '../../config/pieces.ts'

export const moduleSchema = section(
  {
    file: optional(path({ description: 'TypeScript or JavaScript file whose default export makes it.' })),
    package: optional(
      text({ description: 'Or a package (JavaScript) that is installed where Postern is started.' }),
    ),
    options: opaque<unknown>({ default: {}, description: 'Handed to the module as they stand here.' }),
    timeout: duration({
      default: '30s',
      description:
        'How long an answer may take, until it begins (a stream, an event stream apart: with its first piece); beyond that the client gets 503.',
    }),
    idle: duration({
      default: '1m',
      description: 'Between two pieces of a stream, while the client takes them; beyond that it is cut off.',
    }),
    responseHeaders: list(text({ description: 'A header’s name.' }), {
      default: [],
      description: 'Headers of its answers that reach the client beyond the defaults, such as `Location`.',
    }),
  },
  { description: 'A file or package of your own, by the contract `postern/backend`.' },
)

export type ModuleConfig = Static<typeof moduleSchema>
