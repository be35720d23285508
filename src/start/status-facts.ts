/** What a status tells of the configuration in force. */
import { stat } from 'node:fs/promises'
import { planAudit } from '../audit/config.ts'
import type { StatusSources } from '../operations/status/read-status.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { reportOnlyAreas } from '../settings/dangers.ts'
import { sqliteFile } from '../stores/config.ts'
import { VERSION } from './version.ts'

/** The files of the store: what was written last stands in the second. */
const FILES = ['', '-wal']

/** Bytes of the store's files. Rejects with the system's error if there is none. */
async function sizeOnDisk(data: string): Promise<number> {
  const [main, log] = await Promise.allSettled(FILES.map((suffix) => stat(sqliteFile(data) + suffix)))
  if (main?.status !== 'fulfilled') throw new Error('there is no file')
  return main.value.size + (log?.status === 'fulfilled' ? log.value.size : 0)
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
