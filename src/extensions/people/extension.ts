/** People that live elsewhere: code of the operator's finds them (C5.7). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { KEYS, peopleOf, refusePeopleOfSidecar } from './schema.ts'

export const extension = {
  settings: {
    keys: { directory: KEYS },
    checks: [{ needs: ['directory'], whole: ['issuers'], run: refusePeopleOfSidecar }],
    partChecks: [
      {
        needs: ['directory'],
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
    open: async (directory, opening) => {
      const config = peopleOf(directory)
      if (config === undefined) return undefined
      const { openPeopleSource } = await import('./module-people.ts')
      return openPeopleSource(config, opening)
    },
  },
} as const satisfies Extension
