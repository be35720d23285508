/** The admin API as one table, which is served and described from the same rows. */
import type { Clock } from '../../kernel/clock.ts'
import { maintenanceRoutes } from './maintenance.ts'
import { ORDER_ROUTES } from './orders.ts'
import { ok, type AdminRoute } from './routes.ts'
import { describeAdminApi } from '../openapi.ts'

/** Every route, the document that describes them included. `version` is that of the service. */
export function adminRoutes(clock: Clock, version: string): readonly AdminRoute[] {
  const routes: AdminRoute[] = [...maintenanceRoutes(clock), ...ORDER_ROUTES]
  routes.push({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'describe',
    summary: 'This document',
    answers: { 200: ['OpenAPI 3.1', { type: 'object' }] },
    handle: () => ok(describeAdminApi(routes, version)),
  })
  return routes
}
