import { globSync } from 'node:fs'

/** The folder of Postgres' programs, of the newest version that is installed; undefined: none is. */
export const postgresPrograms = (): string | undefined =>
  globSync('/usr/lib/postgresql/*/bin')
    .sort((one, other) => Number(one.split('/')[4]) - Number(other.split('/')[4]))
    .at(-1)
