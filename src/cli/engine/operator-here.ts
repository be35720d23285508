/** Finds who gives an order that is carried out in this process, and whether the data folder is theirs. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../base/kernel/clock.ts'
import { userName, whyUnwritable } from '../../base/files/file-modes.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { OperationError } from '../../operate/operation/errors.ts'
import { type AuthenticatedOperator, Operators, unknownOperator } from '../../operate/operation/operators.ts'
import { readAdminToken } from '../../operate/trail/announcement.ts'
import { ADMIN } from '../../operate/settings/admin.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { unkeptTrail } from '../../serve/parts/data-folder.ts'
import { trailOpener } from '../../serve/start/settings.ts'
import { systemOperatorName } from '../line/call-options.ts'

/** Everything that files allow, the user of the operating system may do. */
const systemOperator = (): AuthenticatedOperator => ({
  name: systemOperatorName(),
  role: ADMIN,
  expires: Number.POSITIVE_INFINITY,
})

/** Who gives orders, and whether their token has expired: for `requireRight`. */
export interface OperatorHere {
  readonly operator: AuthenticatedOperator
  readonly expired: boolean
}

/**
 * The operator who gives the order. A token that is given counts here too: a wrong one is refused. Rejects with AdminError 401.
 *
 * @param own the operator's own token, if one is given
 */
export async function operatorHere(
  { admin, data }: Pick<Configuration, 'admin' | 'data'>,
  own: string | undefined,
): Promise<OperatorHere> {
  if (own === undefined) return { operator: systemOperator(), expired: false }
  const ownToken = admin.token ?? (await readAdminToken(data).catch(() => newSecret()))
  const operators = new Operators(ownToken, admin.tokens, systemClock)
  const operator = operators.find(`Bearer ${own}`)
  if (operator === undefined) throw unknownOperator(`Bearer ${own}`)
  return { operator, expired: operators.hasExpired(operator) }
}

/** Files that the service makes in its data folder: only its user can use what another user makes there. */
const OF_SERVICE = ['postern.sqlite', 'keys', 'service.lock', 'admin-token', 'audit']

/**
 * Throws OperationError for another user than that of the service. Root too: the service could not use what root makes. To be
 * called before the lock is taken, which makes a file.
 */
export function refuseOtherUser(data: string): void {
  const user = process.geteuid?.()
  // Where nothing can be made, nothing is left behind.
  if (user === undefined || !existsSync(data) || whyUnwritable(data) !== undefined) return
  const made = OF_SERVICE.map((name) => join(data, name)).find((path) => existsSync(path))
  // A volume may belong to root, and what is in it to the service.
  if (made === undefined && user !== 0) return
  const { uid } = statSync(made ?? data)
  if (uid === user) return
  const name = userName(uid) ?? `#${uid}`
  throw new OperationError(
    `${data} belongs to the user ${name}, and what another one makes there could not be used by the service: run this as that user (sudo -u ${name} postern …)`,
  )
}

/** Why a data folder must not be used: it has a trail, and no extension keeps one. Undefined if it may be. */
export const unkeptTrailIn = (data: string): string | undefined =>
  trailOpener === undefined ? unkeptTrail(data) : undefined

/** Throws OperationError for a data folder that must not be used. */
export function refuseUnkeptTrail(data: string): void {
  const unkept = unkeptTrailIn(data)
  if (unkept !== undefined) throw new OperationError(unkept)
}
