/** People that live elsewhere: code of the operator's finds them (C5.7). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { KEYS, type PeopleConfig, peopleOf, refusePeopleOfSidecar } from './schema.ts'

export const extension = {
  settings: {
    keys: { directory: KEYS },
    checks: [{ needs: ['directory'], whole: ['issuers'], run: refusePeopleOfSidecar }],
    partChecks: [
      {
        needs: ['directory'],
        whole: ['issuers'],
        run: async ({ directory }, problems) => {
          const config = peopleOf(directory)
          if (config === undefined) return
          const { tryPeople } = await import('./module-directory.ts')
          await tryPeople(config, problems)
        },
      },
    ],
  },
  people: {
    configOf: peopleOf,
    open: async (config, opening) => {
      const { openPeopleSource } = await import('./module-people.ts')
      return openPeopleSource(config as PeopleConfig, opening)
    },
  },
} as const satisfies Extension
