/** Reads how the service is (C11.5.5). Imported only by a service: commands need nothing of what it reads. */
import { stat } from 'node:fs/promises'
import { planAudit } from '../../state/audit/format/schema.ts'
import { everyMark } from '../../identity/directory/records/marks.ts'
import { listKeys } from '../../identity/keys/signing/listed-keys.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { reportOnlyAreas } from '../settings/dangers.ts'
import { sqliteFile } from '../../state/stores/schema.ts'
import { logOf } from '../../state/stores/sqlite/store-files.ts'
import { type MarkStatus, readStatus, type Status } from '../watch/status/status.ts'
import { configurationDigest } from './compare-configuration.ts'
import type { ServiceContext } from '../operation/context.ts'

/**
 * The bytes of the store's file and of its -wal, which holds the latest writes. Rejects with the system's error if there is
 * no file.
 */
async function sizeOnDisk(data: string): Promise<number> {
  const file = sqliteFile(data)
  const { size } = await stat(file)
  const log = await stat(logOf(file)).catch(() => undefined)
  return size + (log?.size ?? 0)
}

/** How many rows of marks are told. */
const MOST_MARKS = 100

/** Rejects with Fault `identity_unavailable`. */
async function marksOf(store: ServiceContext['store']): Promise<readonly MarkStatus[]> {
  const rows: MarkStatus[] = []
  for await (const { what, name, subjects, since: at } of everyMark(store)) {
    const since = new Date(at).toISOString()
    rows.push(
      ...(what === 'client' ? [{ client: name, since }] : subjects.map((subject) => ({ subject, since }))),
    )
    if (rows.length >= MOST_MARKS) break
  }
  return rows
}

export function statusOf(service: ServiceContext): Promise<Status> {
  const { version, startedAt, clock, file, loads, maintenance, readings, readiness } = service
  const configuration = service.configuration()
  const { store, data } = configuration
  const sidecar = isSidecar(configuration)
  const onDisk = !sidecar && store.kind === 'sqlite'
  return readStatus({
    version,
    node: process.version,
    startedAt,
    sidecar,
    storeKind: sidecar ? 'memory' : store.kind,
    storeSize: () => (onDisk ? sizeOnDisk(data) : Promise.resolve(undefined)),
    auditKept: planAudit(configuration) !== undefined,
    now: () => clock.now(),
    readings,
    readiness,
    standing: () => ({
      file,
      digest: configurationDigest(configuration, service.settings),
      loadedAt: loads.loadedAt,
      refused: loads.refused,
    }),
    keys: async () => {
      const work = await service.keys()
      return work && listKeys(work.plan, work.clock)
    },
    switches: () => maintenance.list(),
    reportOnlyAreas: () => reportOnlyAreas(configuration),
    marks: () => (sidecar ? Promise.resolve([]) : marksOf(service.store)),
  })
}
