import { duration, list, opaque, optional, path, section, text, type Static } from '../config/pieces.ts'

export const moduleSchema = section(
  {
    file: optional(path({ description: 'TypeScript or JavaScript file whose default export makes it.' })),
    package: optional(
      text({ description: 'Or a package (JavaScript) that is installed where Postern is started.' }),
    ),
    options: opaque<unknown>({ default: {}, description: 'Handed to the module as they stand here.' }),
    timeout: duration({
      default: '30s',
      description: 'How long an answer may take, until it begins; beyond that the client gets 503.',
    }),
    responseHeaders: list(text({ description: 'A header’s name.' }), {
      default: [],
      description: 'Headers of its answers that reach the client beyond the defaults, such as `Location`.',
    }),
  },
  { description: 'A file or package of your own, by the contract `postern/backend`.' },
)

export type ModuleConfig = Static<typeof moduleSchema>
