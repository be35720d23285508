/** Where the audit trail of a configuration is kept. */
import { join } from 'node:path'
import type { Configuration } from './configuration.ts'

/** The folder of a trail that is kept in the data folder. */
export const usualTrail = (data: string): string => join(data, 'audit')

export interface TrailSettings {
  /** The folder; undefined if none is kept. */
  readonly folderOf: (configuration: Configuration) => string | undefined
  /** The configuration without what each node has of its own: the folder, and files. */
  readonly withoutOwn: (configuration: Configuration) => object
}
