/** The admin listener with its token and its trail, and how commands find it. */
import { resolve } from 'node:path'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import {
  adminTokenFile,
  type DataFolderLock,
  ensureAdminToken,
  pointToTrail,
} from '../../operate/trail/announcement.ts'
import type { ServiceContext } from '../../operate/operation/context.ts'
import { type AdminListener, startAdminListener } from '../../operate/listener.ts'
import { recordKindsWith } from '../../identity/directory/editors/editors.ts'
import { adminRoutes } from '../../operate/openapi.ts'
import type { Operators } from '../../operate/operation/operators.ts'
import type { WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { Observation } from './observation.ts'
import type { OwnedTrail } from '../../operate/hooks/kept-trail.ts'
import { VERSION } from '../parts/version.ts'
import { addedOperations, SETTINGS, trailFolderOf } from './settings.ts'

/** Tells commands where this service is. A sidecar without a trail writes nothing to disk, and is found by its configuration. */
export function announceService(
  configuration: Configuration,
  adminUrl: string,
  announcer: OwnedTrail | DataFolderLock | undefined,
): void {
  const data = ownTokenFile(configuration) === undefined ? undefined : resolve(configuration.data)
  announcer?.announce({ adminUrl, ...(data !== undefined && { data }) })
}

/** Throws the system's error if that cannot be written. */
export function tellWhereTrailIs(configuration: Configuration): void {
  const folder = trailFolderOf(configuration)
  if (folder !== undefined && !isSidecar(configuration)) pointToTrail(resolve(configuration.data), folder)
}

/**
 * A sidecar writes nothing to disk (C11.2). Unless its configuration gives a token, its admin API gets a random one that
 * nobody knows, so nobody can use it.
 */
export const ownAdminToken = (configuration: Configuration): Promise<string> =>
  isSidecar(configuration) ? Promise.resolve(newSecret()) : ensureAdminToken(configuration.data)

export const ownTokenFile = (configuration: Configuration): string | undefined =>
  configuration.admin.token === undefined && !isSidecar(configuration)
    ? adminTokenFile(configuration.data)
    : undefined

interface Administered {
  readonly pool: Promise<WorkerPool<Configuration>>
  readonly audit: Pick<AuditTrail, 'note'>
  readonly operators: Operators
  readonly context: Promise<ServiceContext>
}

export async function openAdmin(
  { admin }: Configuration,
  observation: Observation,
  { pool, audit, operators, context }: Administered,
): Promise<AdminListener> {
  const { health, recorder } = observation
  const kinds = recordKindsWith(SETTINGS.added.clientForm)
  const routes = adminRoutes(VERSION, kinds, await addedOperations())
  return startAdminListener({
    config: admin,
    health,
    recorder,
    metrics: async () => observation.scrape(await pool),
    operators,
    api: { audit, routes, context },
  })
}
