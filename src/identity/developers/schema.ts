import { choice, either, optional, section, type Static, text } from '../../base/config/schema.ts'
import type { Problems } from '../../base/config/problems.ts'
import { CODE_PATTERN } from '../directory/records/schema.ts'

const sample = section(
  {
    client: text({ description: 'Id of a client of kind `customer` with the grants that the commands use.' }),
    secret: text({ description: 'Its secret. Everybody can read it.' }),
    username: text({ description: 'Name of a user who may log in through this client.' }),
    password: text({ description: 'Password of this user. Everybody can read it.' }),
    business: text({
      pattern: CODE_PATTERN,
      expected: 'the code of a business',
      description: 'Business that the commands ask for.',
    }),
    fund: optional(
      text({
        pattern: CODE_PATTERN,
        expected: 'the code of a fund',
        description: 'Fund of this business, for addresses that name one.',
      }),
    ),
  },
  {
    description:
      'A login for trying the API: the pages show it to everybody, so that their commands work as they stand.',
  },
)

const opened = section(
  {
    sample: optional(sample),
  },
  { description: 'The pages are served, with what is told here.' },
)

export const developersSchema = either(
  choice(['on', 'off'], { description: 'Whether the pages are served.' }),
  opened,
  {
    default: 'off',
    description:
      'Pages for those who write clients, made from this file and open to everybody: `on`, `off`, or what they tell.',
  },
)

type DevelopersConfig = Static<typeof developersSchema>

export const hasDeveloperPages = (config: DevelopersConfig): boolean => config !== 'off'

export const sampleLogin = (config: DevelopersConfig): Static<typeof sample> | undefined =>
  typeof config === 'string' ? undefined : config.sample

interface Deployment {
  readonly developers: DevelopersConfig
  /** Whether everybody knows its secrets already. */
  readonly demo: boolean
  readonly sidecar: boolean
}

/** Refuses pages where nothing serves them, and warns of a login that everybody can read. */
export function checkDevelopers({ developers, demo, sidecar }: Deployment, problems: Problems): void {
  if (!hasDeveloperPages(developers)) return
  if (sidecar) problems.error(['developers'], 'has no use in a sidecar, which serves no pages')
  if (sampleLogin(developers) !== undefined && !demo)
    problems.warn(
      ['developers', 'sample'],
      'shows a client’s secret and a user’s password to everybody',
      'use a client and a user that open sample data only',
    )
}
