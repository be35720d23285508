import { join } from 'node:path'
import type { Problems } from '../../base/config/problems.ts'
import { choice, duration, kinds, optional, section, size, type Static } from '../../base/config/schema.ts'
import type { SqlitePlan } from './sqlite/sqlite-file.ts'

export const storeSchema = kinds(
  {
    sqlite: section(
      {
        synchronous: choice(['normal', 'full'], {
          default: 'normal',
          description:
            '`normal`: data survives the end of the process. `full`: it survives a power cut too, and each write is slower.',
        }),
        deadline: duration({
          default: '5s',
          description:
            'How long a request waits for the store in all, before it is answered 503. Where 1,000 reads or writes wait in a process, 503 at once.',
        }),
        maxSize: optional(
          size({
            description:
              'Largest size of the file. When it is full, nothing new is issued (503) until something expires.',
          }),
        ),
      },
      { description: 'A file in the data folder, shared by all processes of the machine.' },
    ),
    memory: section({}, { description: 'Forgets everything at a restart, and serves one process only.' }),
  },
  {
    default: { kind: 'sqlite' },
    description: 'Where refresh tokens, sessions, consents, revocations and maintenance switches are kept.',
  },
)

/** The shortest `deadline`, in milliseconds. */
const SHORTEST_DEADLINE = 100

export type StoreConfig = Static<typeof storeSchema>

/** Reports a store that does not fit the number of worker processes, and a deadline that no disk keeps. */
export function compileStore(config: StoreConfig, workers: number, problems: Problems): void {
  if (config.kind === 'sqlite' && config.deadline < SHORTEST_DEADLINE)
    problems.error(
      ['store', 'deadline'],
      `is less than ${SHORTEST_DEADLINE} ms, in which no disk is sure to answer`,
      'leave it out for 5 s',
    )
  if (config.kind === 'memory' && workers > 1)
    problems.error(
      ['store', 'kind'],
      `is memory, which processes do not share, but there are ${workers} workers`,
      'use sqlite, or one worker',
    )
}

export const sqliteFile = (data: string): string => join(data, 'postern.sqlite')

export const planSqlite = (config: StoreConfig & { kind: 'sqlite' }, data: string): SqlitePlan => ({
  path: sqliteFile(data),
  synchronous: config.synchronous,
  deadline: config.deadline,
  maxSize: config.maxSize,
  marked: true,
})
