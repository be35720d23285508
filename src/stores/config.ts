/** Where state is kept. */
import { join } from 'node:path'
import { choice, kinds, optional, section, size, type Static } from '../config/pieces.ts'
import type { Report } from '../config/report.ts'
import type { SqlitePlan } from './sqlite-file.ts'

export const storeSchema = kinds(
  {
    sqlite: section({
      synchronous: choice(['normal', 'full'], {
        default: 'normal',
        description:
          'What survives what. `normal`: whatever was answered survives the death of the process, but the last moments ' +
          'may be lost in a power cut. `full`: a power cut too, at the price of a disk flush per write.',
      }),
      maxSize: optional(
        size({
          description:
            'How large the file may grow. When it is full, nothing new is issued (503) until something expires. ' +
            'Unlimited if not given.',
        }),
      ),
    }),
    memory: section({}),
  },
  {
    default: { kind: 'sqlite' },
    description:
      'Where codes, refresh tokens, sessions, consents, revocations and switches are kept: `sqlite`, a file in the ' +
      'data folder, shared by all processes of the machine; or `memory`, which forgets everything at a restart and ' +
      'serves one process only.',
  },
)

export type StoreConfig = Static<typeof storeSchema>

/** Reports a store that does not fit the number of worker processes. */
export function compileStore(config: StoreConfig, workers: number, report: Report): void {
  if (config.kind === 'memory' && workers > 1)
    report.error(
      ['store', 'kind'],
      `is memory, which processes do not share, but there are ${workers} workers`,
      'use sqlite, or one worker',
    )
}

export const sqliteFile = (data: string): string => join(data, 'postern.sqlite')

export const planSqlite = (config: StoreConfig & { kind: 'sqlite' }, data: string): SqlitePlan => ({
  path: sqliteFile(data),
  synchronous: config.synchronous,
  maxSize: config.maxSize,
  marked: true,
})
