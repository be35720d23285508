import { choice, either, optional, section, type Static, text } from '../../base/config/schema.ts'
import type { Problems } from '../../base/config/problems.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { CODE_PATTERN } from '../../identity/directory/records/schema.ts'

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

export const DEVELOPER_KEYS = {
  developers: either(choice(['on', 'off'], { description: 'Whether the pages are served.' }), opened, {
    default: 'off',
    description:
      'Pages for those who write clients, made from this file and open to everybody: `on`, `off`, or what they tell.',
  }),
}

type DevelopersConfig = Static<typeof DEVELOPER_KEYS.developers>

/** The value of `developers`. Only this folder reads it. */
export const developersOf = (configuration: Configuration): DevelopersConfig =>
  (configuration as Configuration & { readonly developers: DevelopersConfig }).developers

/** A login that everybody may read. */
export type SampleLogin = Static<typeof sample>

export function sampleLogin(configuration: Configuration): SampleLogin | undefined {
  const developers = developersOf(configuration)
  return typeof developers === 'string' ? undefined : developers.sample
}

/** Refuses pages where nothing serves them, and warns of a login that everybody can read. */
export function checkDevelopers(configuration: Configuration, problems: Problems): void {
  if (developersOf(configuration) === 'off') return
  if (isSidecar(configuration))
    problems.error(['developers'], 'has no use in a sidecar, which serves no pages')
  // The secrets of a demo are known to everybody already.
  if (sampleLogin(configuration) !== undefined && !configuration.demo)
    problems.warn(
      ['developers', 'sample'],
      'shows a client’s secret and a user’s password to everybody',
      'use a client and a user that open sample data only',
    )
}
