/** The pages for those who write clients (C11.4). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { checkDevelopers, developersOf, DEVELOPER_KEYS } from './schema.ts'

export const extension = {
  settings: {
    keys: { '': DEVELOPER_KEYS },
    checks: [{ needs: ['developers', 'demo'], whole: ['issuers'], run: checkDevelopers }],
    first: 'developers: on # pages for those who write clients, at {authUrl}/developers',
  },
  endpoints: (configuration) =>
    developersOf(configuration) === 'off'
      ? undefined
      : import('./compile.ts').then(({ developerPages }) => developerPages(configuration)),
} as const satisfies Extension
