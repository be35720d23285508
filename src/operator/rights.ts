/** What each role of the admin API may do (C12.2.4). */
import type { ADMIN, ROLES } from '../settings/admin.ts'

/**
 * What a route needs. `view`: status and metrics. `inspect`: what decides, such as the configuration, and why.
 * `operate`: orders to the running service. `administer`: the directory, sessions, keys, erasing. `audit`: the audit trail.
 */
export type Right = 'view' | 'inspect' | 'operate' | 'administer' | 'audit'

/** Of a named token, or of the one token of the service. */
export type Role = (typeof ROLES)[number] | typeof ADMIN

const RIGHTS: Readonly<Record<Role, readonly Right[]>> = {
  view: ['view'],
  operate: ['view', 'inspect', 'operate'],
  administer: ['view', 'inspect', 'operate', 'administer'],
  audit: ['view', 'inspect', 'audit'],
  admin: ['view', 'inspect', 'operate', 'administer', 'audit'],
}

export const hasRight = (role: Role, right: Right): boolean => RIGHTS[role].includes(right)

/** The roles with a right. */
export const rolesWith = (right: Right): readonly string[] =>
  Object.entries(RIGHTS).flatMap(([role, rights]) => (rights.includes(right) ? [role] : []))
