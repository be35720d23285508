/** `postern token`: an access token to try a service with (C11.5.7). */
import type { Terminal } from '../operator/terminal.ts'
import type { UsableTestToken } from '../operator/test-token-orders.ts'
import { UsageError } from '../operator/verb.ts'
import { type AdminCall, callAdminApi, operatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason } from './call-options.ts'
import { TOKEN } from './tables/try.ts'
import { commandOf } from './verbs.ts'

/** Whom a test token is for, by the options of a command. */
export interface BearerOptions extends CallOptions {
  readonly user?: string | undefined
  readonly client?: string | undefined
  readonly scope?: string | undefined
  readonly business?: string | undefined
  readonly fund?: string | undefined
}

function targetOf({ business, fund }: BearerOptions): string | undefined {
  if (business === undefined && fund !== undefined)
    throw new UsageError('expected --business beside --fund: a fund belongs to a business')
  if (business === undefined) return undefined
  return fund === undefined ? `b/${business}` : `f/${business}/${fund}`
}

/** The order for a test token. @throws UsageError if no user is named */
export function testTokenCall(options: BearerOptions, terminal: Terminal): AdminCall {
  const { user, client, scope } = options
  if (user === undefined) throw new UsageError('expected --user: whom the token is for')
  const who = { reason: checkedReason(options), by: operatorName(terminal) }
  const body = { user, client, scope, target: targetOf(options), ...who }
  return { method: 'POST', path: '/test-tokens', body }
}

/** What was granted, for people. */
export function grantText({ client, subject, scope, expiresIn, dropped }: UsableTestToken): string {
  const less = dropped.length === 0 ? '' : `; not granted: ${dropped.join(' ')}`
  return `client ${client}, subject ${subject}, for ${expiresIn} s, scope ${scope}${less}\n`
}

export const tokenCommand = commandOf(TOKEN, {
  '': ({ values }, terminal) => {
    const show = (issued: UsableTestToken): string => {
      // Beside it, so that a script gets the token alone.
      terminal.stderr.write(grantText(issued))
      return `${issued.token}\n`
    }
    return callAdminApi(testTokenCall(values, terminal), values, terminal, show)
  },
})
