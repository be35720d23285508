/** People that live elsewhere: code of the operator's finds them (C5.7). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { PEOPLE_KEYS, type PeopleConfig, peopleConfigOf, refusePeopleOfSidecar } from './schema.ts'

export const extension = {
  settings: {
    keys: { directory: PEOPLE_KEYS },
    checks: [{ needs: ['directory'], whole: ['issuers'], run: refusePeopleOfSidecar }],
    partChecks: [
      {
        needs: ['directory'],
        whole: ['issuers'],
        run: async ({ directory }, problems) => {
          const config = peopleConfigOf(directory)
          if (config === undefined) return
          const { tryPeople } = await import('./module-directory.ts')
          await tryPeople(config, problems)
        },
      },
    ],
  },
  people: {
    configOf: peopleConfigOf,
    open: async (config, opening) => {
      const { openPeopleSource } = await import('./module-people.ts')
      return openPeopleSource(config as PeopleConfig, opening)
    },
  },
} as const satisfies Extension
