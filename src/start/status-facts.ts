/** What a status tells of the configuration in force. */
import { stat } from 'node:fs/promises'
import { planAudit } from '../audit/schema.ts'
import type { StatusSources } from '../watch/status/status.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { reportOnlyAreas } from '../settings/dangers.ts'
import { sqliteFile } from '../stores/schema.ts'
import { logOf } from '../stores/store-files.ts'
import { VERSION } from './version.ts'

/** Bytes of the store's file and of its -wal, in which what was written last stands. Rejects with the system's error if there is no file. */
async function sizeOnDisk(data: string): Promise<number> {
  const file = sqliteFile(data)
  const { size } = await stat(file)
  const log = await stat(logOf(file)).catch(() => undefined)
  return size + (log?.size ?? 0)
}

type Facts = Pick<
  StatusSources,
  'version' | 'node' | 'sidecar' | 'storeKind' | 'storeSize' | 'auditKept' | 'reportOnlyAreas'
>

export function statusFactsOf(configuration: Configuration): Facts {
  const { store, data, audit } = configuration
  const sidecar = isSidecar(configuration)
  const onDisk = !sidecar && store.kind === 'sqlite'
  return {
    version: VERSION,
    node: process.version,
    sidecar,
    storeKind: sidecar ? 'memory' : store.kind,
    storeSize: () => (onDisk ? sizeOnDisk(data) : Promise.resolve(undefined)),
    auditKept: planAudit(audit, data, sidecar) !== undefined,
    reportOnlyAreas: () => reportOnlyAreas(configuration),
  }
}
