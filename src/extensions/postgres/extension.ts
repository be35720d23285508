/** A Postgres database as the store that several nodes share (C11.7). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { COMMANDS } from './commands.ts'
import { checkStore, postgresOf, postgresSchema, storeLocation } from './schema.ts'

const open = () => import('./open.ts')

export const extension = {
  settings: {
    stores: {
      postgres: {
        schema: postgresSchema,
        connections: (section) => postgresOf(section).connections + 1,
        location: (section) => storeLocation(postgresOf(section)),
        backup:
          'the store is a Postgres database: back it up with `pg_dump`, or by what your provider offers. Its keys are in it, sealed: keep store.seal apart from the copy.',
        admit: async (section, onTrouble) => (await open()).awaitTables(postgresOf(section), onTrouble),
        open: async (section, clock, options) =>
          (await open()).openPostgres(postgresOf(section), clock, options),
        openToRead: async (section, clock, options) =>
          (await open()).openPostgresToRead(postgresOf(section), clock, options),
        openKeys: async (section, store) => {
          const { SealedKeys, sealsOf } = await import('./sealed-keys.ts')
          return new SealedKeys(store, sealsOf(section))
        },
        diagnose: async (section, processes) =>
          (await import('./diagnose.ts')).diagnose(postgresOf(section), processes),
      },
    },
    checks: [{ needs: ['store'], run: ({ store }, problems) => checkStore(store, problems) }],
  },
  commands: COMMANDS,
} as const satisfies Extension
