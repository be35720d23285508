import { moduleKeys } from '../../base/config/modules/import-file.ts'
import type { Problems } from '../../base/config/problems.ts'
import { kinds, optional, section, type Static } from '../../base/config/schema.ts'
import type { DirectoryConfig } from '../../identity/directory/records/schema.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'

const people = kinds(
  {
    module: section(moduleKeys('`findUserByName`, `findUserBySubject` and `verifyPassword`'), {
      description: 'Code of your own that finds users and verifies their passwords.',
    }),
  },
  { description: 'Users that live in another system. Those of `users` and of the store come first.' },
)

export const PEOPLE_KEYS = { people: optional(people) }

export type PeopleConfig = Static<typeof people>

/** The value of `directory.people`. Only this folder reads it. */
export const peopleConfigOf = (directory: DirectoryConfig): PeopleConfig | undefined =>
  (directory as { readonly people?: PeopleConfig }).people

/** A sidecar takes no passwords, so nobody would ever be found: a configuration that says so means something else. */
export function refusePeopleOfSidecar(configuration: Configuration, problems: Problems): void {
  if (peopleConfigOf(configuration.directory) === undefined || !isSidecar(configuration)) return
  problems.error(['directory', 'people'], 'has no use in a sidecar: the issuers of `issuers` know the people')
}
