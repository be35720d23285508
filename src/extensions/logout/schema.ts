import { literalText, optional } from '../../base/config/schema.ts'
import { checkAddress, HTTPS_ADDRESS } from '../../identity/directory/records/addresses.ts'
import type { ClientCheck } from '../../identity/directory/records/schema.ts'

export const CLIENT_KEYS = {
  backchannelLogoutUri: optional(
    literalText({
      ...HTTPS_ADDRESS,
      description: 'Is told when a person logs out (OpenID Connect Back-Channel Logout 1.0).',
    }),
  ),
}

/** The value of a client's `backchannelLogoutUri`. Only this folder reads it. */
export const logoutUriOf = (client: object): string | undefined =>
  (client as { readonly backchannelLogoutUri?: string }).backchannelLogoutUri

export const checkLogoutUri: ClientCheck = (client, problems) => {
  const uri = logoutUriOf(client)
  if (uri !== undefined && client.kind === 'machine')
    problems.error(['backchannelLogoutUri'], 'means nothing for a machine: no person uses it')
  checkAddress('backchannelLogoutUri', uri, 'who logs out', problems)
}
