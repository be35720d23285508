/** The words typed for `postern init`: its own options, and those of the sources of a configuration. */
import type { FirstConfigurationSource } from '../../operate/hooks/first-configuration.ts'
import type { Extension } from '../../operate/hooks/extension.ts'
import * as extensions from '../../serve/start/extensions.ts'
import type { CommandTable } from '../line/command.ts'
import { JSON_ANSWER } from '../line/call-options.ts'

/** Not from serve/start/settings.ts, which loads the schema of the whole configuration. */
export const EXTENSIONS: readonly Extension[] = Object.values<Extension>(extensions)

/** The sources that there are. */
export const SOURCES: readonly FirstConfigurationSource[] = EXTENSIONS.flatMap(
  ({ firstConfiguration }) => firstConfiguration ?? [],
)
const options = Object.assign(
  {},
  ...SOURCES.map((source) => source.options),
) as FirstConfigurationSource['options']
const notes = SOURCES.flatMap((source) => source.notes)
const examples = SOURCES.flatMap((source) => source.examples)
const address = SOURCES.map((source) => `${source.address}, else `).join('')

export const INIT = {
  verbs: {
    '': {
      summary: 'Write a first configuration, with new secrets',
      notes: [
        'It writes postern.yaml into FOLDER (default: the working folder) and overwrites nothing. On a terminal it asks for what no option tells. Elsewhere it takes the defaults.',
        'It prints the secret of the first client and the password of the first user, once, and the command that serves the file.',
        ...notes,
      ],
      arguments: [{ name: 'FOLDER', kind: 'folder', optional: true }],
      options: {
        upstream: {
          type: 'string',
          kind: 'url',
          help: `Where your service is. Default: ${address}http://127.0.0.1:9000`,
        },
        business: {
          type: 'string',
          value: 'CODE[=NAME]',
          multiple: true,
          help: 'A business, by the code that stands in paths, and its name for people. Default: EXAMPLE',
        },
        client: { type: 'string', value: 'ID', help: 'The first client. Default: first-client' },
        user: { type: 'string', value: 'NAME', help: 'The first user. Default: first-user' },
        ...options,
        yes: { type: 'boolean', help: 'Ask nothing: take the defaults of what no option tells' },
        ...JSON_ANSWER,
      },
      examples: [
        { line: 'postern init', does: 'ask, and write postern.yaml into this folder' },
        {
          line: "postern init my --upstream http://127.0.0.1:9000 --business 'ACME=Acme Advisory' --user alice",
          does: 'write my/postern.yaml without a question',
        },
        ...examples,
      ],
    },
  },
} as const satisfies CommandTable
